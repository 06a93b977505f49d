"""Power cuts: does what was acknowledged outlive them, whatever the disk did with what was not yet synced?

      one life, a process of its own                        the judge
      client + worker ── SqliteStore ── SQLite              opens what is left, with a plain SQLite
             │                            │                 integrity_check, and the checks of the kill loop
        ledger, effects              `disk`: forgets        that hold at any moment
      (another machine: kept)        what was not synced            │
             │                            │                         ▼
             └────────────── the cut ─────┴──► what is left ──► the next life begins with it

After so many cuts a last life comes to rest, and all the checks of `tests.proof.crash` are held against the whole
history. Cuts fall on any write, sync, truncation or removal: while the file is made, in commits,
in checkpoints, in recoveries.

`python -m tests.proof.power_cuts --cuts 1000 --seed 7` is a part of `make soak`; `test_power_cuts` makes a few.
"""

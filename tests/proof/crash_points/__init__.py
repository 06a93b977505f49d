"""Exhaustive crash points: is every invariant kept when a process dies at any statement, call or effect?

      prepare     a scenario's database is made, then the scenario is told once without a crash: the reference
         │
         ▼  for k = 1, 2, 3 … until there is no such point
      kill        a process works on a copy, tells the script, and kills itself at its k-th crash point
         │        (`points`: around every verb of the store that writes, every statement inside, handlers and effects)
         ▼
      go on       a fresh process works on; the client asks again what it was not told, and tells the rest of its script
         │
         ▼
      judge       the kill loop's checker (`tests.proof.crash`) reads ledger, tables and effects with plain SQL; and
                  streams, letters, effects and what else the scenario names must be as in the reference

`python -m tests.proof.crash_points --store sqlite` does all of it; `test_crash_points` kills each scenario at a chosen
point, and shows that a planted bug is found (`plants`).
"""

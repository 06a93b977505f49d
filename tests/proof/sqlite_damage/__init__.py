"""Bytes that change on the disk: is one ever believed?

A database of the kill loop's workload, with work left in it, is damaged in one place: a byte flipped, or the file cut
short. Then all there is to read is read. Allowed is

- everything as it was written: the byte was in a free place, or in one that nobody reads;
- an error of mainspring: `DamagedRecordError`, `DamagedStoreError` or another `StoreError`, never anything else;
- after damage to the log: the state after an earlier commit. SQLite guards each frame by a checksum over all frames
  before it, and its recovery ends at the first that does not fit: what is behind is gone, and what is left is whole;
- without the snapshot that was hit: the stream has it all;
- a listing that lacks rows, if the doctor calls the file damaged: a tree that lost an entry looks like a smaller one.

Never allowed is a stream, a state or an output other than what was written.

`python -m tests.proof.sqlite_damage --flips 1000 --seed 7` is a part of `make soak`; `test_sqlite_damage` makes a few.
"""

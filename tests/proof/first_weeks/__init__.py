"""What a team meets in its first weeks: real workers on PostgreSQL, and all that once went wrong there.

A SQLite file that is deleted or moved under a worker, and a clock that is set back on SQLite, are not among it: here is
PostgreSQL. `tests/engine/test_sqlite_moved.py` and `tests/engine/test_clock_set_back.py` have them.
"""

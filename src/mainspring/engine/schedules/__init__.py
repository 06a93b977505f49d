"""Schedules: each is one instance that waits for its next time.

calendar (when that is), recurring (the workflow that waits for it).
"""

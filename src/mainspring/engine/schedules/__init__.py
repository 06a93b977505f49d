"""Schedules: each is one instance that waits for its next time."""

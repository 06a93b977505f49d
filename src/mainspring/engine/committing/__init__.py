"""Committing: units go into the store together, and the other stations hear of what is left to be claimed.

committer (group commit), wakeups (when to look for work), arrivals (what has come into hand since it was missed),
strangers (what only newer code can read).
"""

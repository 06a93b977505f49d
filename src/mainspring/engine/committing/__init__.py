"""Committing: units go into the store together, and the other stations are notified of what is left to be claimed.

committer (group commit), wakeups (when to look for work), arrivals (what has arrived since it was missed),
strangers (what only newer code can read).
"""

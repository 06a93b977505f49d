"""Claimable: what all stations say of the work that claiming is to look for, or to leave alone.

wakeups (when to look), arrivals (what has come since it was missed), strangers (what only newer code can read).
"""

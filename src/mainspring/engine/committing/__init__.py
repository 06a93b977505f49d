"""Committing: units go into the store together, and what is due and in nobody's hands is claimed from there.

committer (group commit), wakeups (when to look for work), claimer (claims), relay (what programs have posted), arrivals
and strays (held here and not known here), strangers (what only newer code can read), lone_trials (what was lost with
its workers).
"""

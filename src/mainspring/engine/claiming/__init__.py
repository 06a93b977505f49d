"""Claiming: this worker claims what is due and unclaimed, and releases what it holds in vain.

claimer (claims outputs and inputs), relay (what programs have posted), strays (held here and not known here),
lone_trials (what was lost with its workers).
"""

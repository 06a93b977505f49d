"""Claiming: what is due and in nobody's hands comes into this worker's, and what it holds in vain is given back.

claimer (claims outputs and inputs), relay (what programs have posted), strays (held here and not known here),
lone_trials (what was lost with its workers).
"""

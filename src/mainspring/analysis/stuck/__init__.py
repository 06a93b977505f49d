"""Instances that do not go on, and why.

stuck      suspended ones, those that run longer than their workflow says or stay unusually long, and why: stuck_of
awaited    the children, fan-outs and people that it waits for
held       what is paused, held back by workers, was lost with them, or none of them can read, in words
links      which other instances an instance has to do with
"""

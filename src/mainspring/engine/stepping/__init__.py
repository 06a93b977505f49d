"""Stepping: what becomes of an input whose turn it is, and the unit that records it. Read them in this order.

disposition (which of the things that can become of it: a pure function), stepper (does it), units and step_rows (what
is committed), sagas, open_tasks, budget and step_watch (the bounds of a step).
"""

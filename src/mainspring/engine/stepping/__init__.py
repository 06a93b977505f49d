"""Stepping: what becomes of an input whose turn it is, and the unit that records it. Read them in this order.

disposition (which of the things that can become of it: a pure function), stepper (does it), step_unit and units (what
is committed), broken_lanes (what was refused), compensations (what is undone), refused_children, fault_report (what is
logged), inbox (where an input waits), duplicates, open_tasks.
"""

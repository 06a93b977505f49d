"""Stepping: an input takes its turn in the lane of its instance, and the unit records it. Read them in this order.

lanes (an instance in memory and its turns), loader (its state from the store), disposition (which of the things that
can become of an input: a pure function), stepper (does it), step_unit and units (what is committed), broken_lanes (what
was refused), compensations (what is undone), refused_children, fault_report (what is logged), inbox (where an input
waits), duplicates, open_tasks.
"""

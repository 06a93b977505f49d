"""Stepping: what becomes of an input whose turn it is, and the unit that records it. Read them in this order.

stepper, beginnings (what messages that begin instances find), units and step_rows (what is committed), sagas,
open_tasks, budget and step_watch (the bounds of a step).
"""

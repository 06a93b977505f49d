"""Projections: read models, folded from the feed of all recorded events.

projection (as declared), projector (its generations, each moved on in a task of its own), folding (one piece of the
feed).
"""

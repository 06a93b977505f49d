"""Projections: read models, folded from the feed of all recorded events."""

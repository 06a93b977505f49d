"""The fleet: what workers write of themselves with their heartbeats, and what can be told from all of them."""

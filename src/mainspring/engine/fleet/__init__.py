"""The fleet: what workers write of themselves with their heartbeats, and what follows from all of them."""

"""The fleet: what workers write of themselves with their heartbeats, and what follows from all of them.

knowledge (what code a worker has), standing (what it holds back, or has given up), unread (what no worker can read).
"""

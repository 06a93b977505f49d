"""Inputs: from a message to its turn in the lane of its instance. Read them in this order.

intake (a message from outside), pending (an input on its way), inbox (where it waits in the store), lanes
(an instance in memory), loader, long_streams and branches (its state from the store).
"""

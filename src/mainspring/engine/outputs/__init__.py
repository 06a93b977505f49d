"""Outputs: what was recorded is carried out, after its commit. Read them in this order.

dispatcher (an output to its destination), settlements (how outputs end), replies, subscriptions, child_deliveries,
fan_out, awaited_ends (callers that wait for an end).
"""

"""Inputs: from a message to its turn in the lane of its instance. Read them in this order.

envelopes and intake (a message from outside), stored_input (one from the inbox), delivered_output (what an instance
asked for), pending (an input on its way), lanes (an instance in memory and its turns), budget (of its steps), loader,
stored_streams, long_streams and branches (its state from the store), refusals and outside_rule (what is not taken),
sought_command and skipped_input (what must be read), publication (what an app itself publishes).
"""

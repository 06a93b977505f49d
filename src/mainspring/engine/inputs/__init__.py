"""Inputs: from a message to an input of an instance. Read them in this order.

intake (a message from outside), stored_input (one from the inbox), delivered_output (what an instance asked for),
pending (an input on its way), senders, refusals and outside_rule (what is not taken), budget (of an instance's steps),
sought_command and skipped_input (what must be read), stored_streams, long_streams and branches (states from the
store, for whoever asks), publication (what an app itself publishes).
"""

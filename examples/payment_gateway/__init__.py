"""A payment is collected through an outside gateway.

A shop asks for a payment. The gateway is told to charge the card; it answers at once that it took the charge or that it
refuses it, and tells later, by an event, what the customer's bank said. Until then nobody knows. If the gateway stays
silent for too long, the charge is voided, so that nobody pays for an order that was given up, and the payment fails.
"""

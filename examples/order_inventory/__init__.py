"""An order asks the inventory for stock, and the inventory replies.

Two processes that share nothing but messages. `inventory` keeps the stock of one product: deliveries fill it, and
an instance that asks to reserve some gets a reply, with the stock or with how much there is. A reservation that is not
taken within an hour is given up, so that an order that forgot about it keeps nothing from the others.

`workflow` is the order: it asks for its stock and waits half a minute for the reply. With the stock it takes what was
reserved and has it packed; without, or without any reply, the order is rejected. The reply finds the order that asked
by itself: neither process knows where the other one runs.
"""

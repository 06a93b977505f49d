"""An order is checked, paid for and shipped, or its customer's money is given back.

A customer places an order. The shop checks that it can be filled, charges the card, and hands the goods to the carrier;
then the order is fulfilled.

Three things can go wrong. The order cannot be filled or the card is declined: the order fails, and nothing was taken.
The carrier refuses the goods: the charge is undone, so the money is given back, and the order fails. The bank does not
answer within five minutes: nobody knows whether the card was charged, so the shop asks for whatever was taken to be
given back, which may be nothing, and the order fails. An answer that arrives after all changes nothing.
"""

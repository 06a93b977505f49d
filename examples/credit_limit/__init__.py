"""An order on credit asks another service for the customer's limit.

The order service must not ship what the customer cannot pay, but the limit is the customer service's to know, and the
two talk by messages only. So an order asks for credit and waits for the reply. The customer service holds one workflow
for each customer, which knows the limit and what is already reserved of it, and answers yes or no. What an order has
reserved is given back when it cannot be shipped after all, or when the bill is paid. A customer service that does not
answer in time costs the order, but no credit: a yes that comes too late is given back.
"""

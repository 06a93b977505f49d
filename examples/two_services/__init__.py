"""Two services that share no code: an order service has its orders paid by a payment service.

```
 shopper ──PlaceOrder──► NATS ──► order service ──ChargeCard──► RabbitMQ ──► payment service ──► bank
 shopper ◄──OrderConfirmed, OrderRejected── NATS ◄── order service ◄── NATS ◄──CardCharged, CardRefused──┘
```

Each is a process with its own tables in PostgreSQL. README.md says how to run them.
"""

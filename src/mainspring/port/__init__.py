"""The store port: what the engine asks of a database, and nothing more.

The verbs stand in `roles`, to be read one role at a time, and what they take and return in `records` and its
neighbours. They take batches; what may well happen comes back as a value (Committed, Conflict, Duplicate) and
never as an exception. Everything that crosses the port is text, numbers and bytes: a store knows no workflow, no codec
and no message type. `mainspring.stores.memory` is the port's executable explanation,
`mainspring.testing.store_contract` its conformance suite.
"""

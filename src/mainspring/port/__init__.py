"""The store port: what the engine asks of a database, and nothing more.

The verbs stand in `roles`, to be read one role at a time, and what they take and return in `records` and its
neighbours. They take batches; what may well happen comes back as a value (Committed, Conflict, Duplicate) and
never as an exception. Everything that crosses the port is text, numbers and bytes: a store knows no workflow, no codec
and no message type. `mainspring.stores.memory` is the port's executable explanation,
`mainspring.testing.store_contract` its conformance suite.

    store          the sum of the roles
    roles          the verbs
    records        the rows and units that nearly all verbs take or return

What single verbs take or return:

    refs, ids, digests                what instances, outputs and messages are called, and what is left of a message
    preconditions, suspects           what a sender requires; what was lost with its workers
    attempts, tasks, loans            failed attempts; tasks and who may do what; transactions for handlers
    attributes, searches, pages       what instances are found by, and how lists go on
    projections, purges, trims        read models; what is removed, whole or in part
    workers, examination, clock       who lives; what is wrong with a database; whose time counts
"""

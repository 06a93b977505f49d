"""Is there one order of steps that explains all that clients were told of an instance?

      clients ──a line before, a line behind each call──► calls          what was asked and told, and when
                                                           │
                                                         claims          operations, and when each can have been
                                                           │
      the workflow's own step ──► model ──────────────► search           an order, none, or undecided
                                                           │
                                                         judge           instance by instance, and figures

Linearizability is local: a history is linearizable if that of each instance is. What the verbs promise is the table of
`claims`. `slates` is what clients of the kill loop do for it, beside journeys (`tests.proof.crash.seen`). The tests
hold the checker against histories made by hand, against one that tries every order, and against planted violations.

Read models are no part of it: they follow behind, and say so.
"""

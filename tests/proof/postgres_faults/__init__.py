"""PostgreSQL in real trouble, with workers on it that keep a ledger, and an independent judge of what they did.

    stage      a database, some workers and a client on it; what was asked without an answer is asked again
    sessions   connections that are ended, cut at the worst moment, stalled, or not to be had
    server     a server that restarts, crashes while it recovers, or refuses to write
    locks      others who hold what is needed: locks in the other order, for too long, and transactions left open
    standby    a synchronous standby that takes over, also after commits had to wait for it
    room       a full disk, a full log, and no memory left
    clocks     workers whose machines have the wrong time (`skewed` is one, as a process of its own)
    faults     the catalogue of all of these

A fault is there for certain before it counts: each tells how often it has happened, by the server's own log where it
can be seen there, and a run in which it never did is a failure.
"""

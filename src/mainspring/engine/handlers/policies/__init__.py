"""When a handler is called, and when not: pure functions over frozen values. Read them in this order.

    checks     what a setting must be
    retry      after a failure: whether to retry, and how long to wait
    breaker    a destination that fails again and again gets a rest
    limits     no more calls a second than the destination can take

Nothing here knows a clock, randomness or a store: the present moment and the random number are arguments, so that a
simulation runs exactly what production runs. States live in a worker's memory: losing one costs a few calls, never a
message.
"""

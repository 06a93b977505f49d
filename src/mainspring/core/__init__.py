"""The pure core: no clock, no randomness, no I/O, no threads. Read it in this order.

    messages        what travels, and in what envelope
    decisions       what decide returns          Send, Publish, Reply, Schedule, StartChild, FanOut, Complete, Fail
    events          what is recorded             Began, InitiatedBy, Received, Sent, Published, …
    workflow        what an author writes        initial_state, route, decide, evolve
    definition      the class, read and checked  (type_parameters reads its unions, freezing its records)
    route           message → instance id
    translate       decisions → events
    fold            state, events → state
    step            one input taken: decide, check, translate, fold
    failures        what a workflow may listen for when a command or a child has ended
    saga            what was done, and how it is undone
    unkept          workflows of which only the state is kept
    story           a stream as the table that people read
    open_work       the timers and tasks that are open after a stream's events
    execution       a stream as the log of what happened to its instance
    feed            an event as a projection sees it
    changes         what differs between two values, place by place
    difference      what differs, as short as people want to read it

Nothing here changes because a database does.
"""

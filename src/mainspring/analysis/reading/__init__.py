"""decide and evolve, read without running them: `machine.read_machine`.

Reading is like running with the values left open. A message of one type is taken in one state; where the code asks
what only a run knows, such as how large an amount is, the way forks, and both sides are read. What comes back is
every way through decide and, for the events that its decisions would leave, through evolve: see `core.step` and
`core.translate`, which do the same for one message that is there.

    model        a workflow as a state machine: what comes of it
    records      the fields of a class, their types and defaults; states by their classes, or by a status
    values       what an expression stands for
    ways         the ways through code, what is known on each, and the conditions of several as one
    questions    is it true, is it of a class, does it equal another?
    frames       one function while it is read
    patterns     a case's pattern against a value
    expressions  what an expression stands for
    objects      fields, properties and methods
    calls        constructors, helpers, and Python's own functions and methods
    reader       branches, loops and returns; all of these together, for one way
    decisions    what the model says of a decision, and the events that record it
    steps        one message in one state: decide, then evolve
    machine      the whole machine: read_machine
"""

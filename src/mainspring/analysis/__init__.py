"""Understanding: what a workflow can do, read from its code, and what its instances did, read from their streams.

Pure functions over workflow classes and over the read side of a store. The command line prints what they return, and
other tools call them as they are.

    model      a workflow as a state machine: states, transitions, and the places that could not be read
    reading    decide and evolve, read without running them: read_machine
    layout     boxes and lines of a diagram in their places: nothing lies on top of anything else
"""

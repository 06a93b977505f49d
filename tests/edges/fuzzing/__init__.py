"""Every reader of bytes from outside, fed with what nobody would send.

Each has a name, seeds in `corpus/` that it can read, and the errors with which it may refuse. Seeds are changed in
many ways, and what led to something new is changed further. Any other error is a fault: it is told with the bytes that
led to it. `python -m tests.edges.fuzzing` is the long form, with figures.
"""

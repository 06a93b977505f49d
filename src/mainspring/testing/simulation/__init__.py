"""Whole-app simulation: the real engine on a virtual clock and the memory store, in this process.

     simulate      starts the author's own app on the simulated machine, and gives it back as it was
     world         what a test holds: send, advance, step, until, told
     machine       clock, threads, randomness and store of a simulation, and when all of it is quiet
     gate          where inputs and calls of handlers wait while a test steps through
     stubs         what stands in for handlers, and the record of every call
     chronicle     all that happened, in order, as people read it

Quiet is known, not guessed. On the memory store nothing waits for anything but the event loop, the virtual clock, a
thread of a plain handler, or something real inside of a handler. So everything is quiet when the loop has nothing left
to run, no call waits for its thread, and every attempt that runs sleeps on the virtual clock. Only then does time move,
and only to the next moment at which something is due.
"""

from mainspring.testing.simulation.chronicle import Call
from mainspring.testing.simulation.simulate import Simulation, simulate
from mainspring.testing.simulation.world import Timer, World

__all__ = ["Call", "Simulation", "Timer", "World", "simulate"]

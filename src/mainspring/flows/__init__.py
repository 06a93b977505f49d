"""Flows: workflows as async functions, on the same stream as all others.

    words       what a flow's code calls: receive, ask, each, child, publish, stage, now, …
    calls       Call, what is awaited; Step, a function that reaches outside
    ends        Failure, Undo, StepFailed, again: how a flow ends, and how what it awaits fails
    flow        Flow: an async function as a Workflow
    declared    what its code sends and receives, read from it
    journal     its state: what is recorded, kept so that the code can be run again on it
    run         one run of the code on a journal
    asked       what the code asks for, beside what is recorded
    loop        the event loop that runs it, without waiting and in one order everywhere
    live        runs that wait, as a cache
    waiting     where an instance waits: the line, the calls, the variables
    messages    what stands in its stream beside the author's messages

The way of an input. `decide_on` takes the run that has seen the journal as it is (live), or runs the code on it
once more (run). The input is delivered: to the await whose command it answers, to a timer, or to whoever receives
its type. The loop runs until nothing can go on. What the code asked for meanwhile is what is decided. When the next
input comes, it is known at which positions that was recorded, and so which answers belong to it.

Running again is the same, from the beginning: the recorded inputs are delivered, each at its recorded time, and what
the code asks for has to be what is recorded. If it is not, that is drift, and nothing is sent.
"""

from mainspring.flows.calls import Call, Step
from mainspring.flows.ends import Failure, StepFailed, Undo, again
from mainspring.flows.flow import Flow
from mainspring.flows.messages import TimerDue
from mainspring.flows.words import ask, call, child, each, now, publish, race, receive, reply, rng, stage, uuid

__all__ = [
    "Call",
    "Failure",
    "Flow",
    "Step",
    "StepFailed",
    "TimerDue",
    "Undo",
    "again",
    "ask",
    "call",
    "child",
    "each",
    "now",
    "publish",
    "race",
    "receive",
    "reply",
    "rng",
    "stage",
    "uuid",
]

"""Machines drawn by lot: states, inputs, what leads where and how often; also as the source of a workflow."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from mainspring import Workflow

STATES: Final = (
    *("Registered", "AwaitingPayment", "NoticeSent", "Assessed", "PenaltyAdded", "UnderAppeal", "HearingScheduled"),
    *("DocumentsMissing", "PartlyPaid", "OnHold", "Escalated", "ReviewedByExpert", "DecisionPrepared"),
    *("AwaitingSignature", "Reopened", "SentToCollection", "InDispute", "Reassigned", "Verified", "QuoteRequested"),
    *("QuoteReceived", "Approved", "PartsOrdered", "PartsReceived", "WorkScheduled", "WorkInProgress", "Inspected"),
    *("ReworkNeeded", "Invoiced", "ReminderSent", "SecondReminderSent", "InstalmentAgreed", "Deferred"),
    *("AwaitingThirdParty", "Translated", "Forwarded", "Consolidated", "Sampled"),
)
ENDS: Final = ("Closed", "Dismissed")
INPUTS: Final = (
    *("OpenCase", "AssessmentMade", "RecordPayment", "SendNotice", "AddPenalty", "LodgeAppeal", "AppealResultReceived"),
    *("RequestDocuments", "ReceiveDocuments", "Escalate", "CloseCase", "PutOnHold", "Resume", "AssignClerk"),
    *("ScheduleHearing", "RecordDecision", "SignDecision", "SendToCollection", "AgreeInstalments", "Verify"),
    *("ForwardToPartner", "NotePhoneCall", "CorrectData", "Reopen", "SendReminder"),
)
BEGINS: Final = INPUTS[0]
ANSWER: Final = INPUTS[1]
COMMAND: Final = "MakeAssessment"
ENDING_SHARE: Final = 0.3
"""How likely a step leads to an end; what is left goes elsewhere, so a case has some four inputs."""


@dataclass(frozen=True)
class Move:
    """What an input does in a state: None is before the first. `weight`: how likely it is among those of its state."""

    source: str | None
    input: str
    target: str
    weight: float


@dataclass(frozen=True)
class Machine:
    """A workflow's shape. In the `asking` state a command waits for its answer, and nothing else happens."""

    name: str
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    moves: tuple[Move, ...]
    asking: str | None

    @cached_property
    def ways(self) -> Mapping[str | None, tuple[Sequence[Move], Sequence[float]]]:
        """Return by state what may happen there, and how likely each is."""
        found: dict[str | None, list[Move]] = {}
        for move in self.moves:
            found.setdefault(move.source, []).append(move)
        return {source: (moves, [move.weight for move in moves]) for source, moves in found.items()}

    def ends(self, state: str) -> bool:
        """Return True if a case is over in a state."""
        return state in ENDS


def drawn(
    seed: int = 1, *, states: int = 13, inputs: int = 11, transitions: int = 88, name: str = "Cases", asks: bool = True
) -> Machine:
    """Draw a machine with so many states, kinds of input, and transitions, its first one among them.

    There are loops, ways back, and paths that are hardly ever taken. Without `asks` no handler is called.
    """
    if not 4 <= states <= len(STATES) + len(ENDS) or not 3 <= inputs <= len(INPUTS):
        raise ValueError(f"4 to {len(STATES) + len(ENDS)} states and 3 to {len(INPUTS)} kinds of input can be drawn")
    dice = random.Random(seed)  # noqa: S311  no secret
    open_states, kinds = STATES[: states - len(ENDS)], INPUTS[:inputs]
    asking = open_states[2] if asks else None
    busy = [state for state in open_states if state != asking]
    free = [kind for kind in kinds if kind not in (BEGINS, ANSWER)] + ([] if asks else [ANSWER])
    pairs = [(state, kind) for state in busy for kind in free]
    fewest = 1 + bool(asks) + 2 * len(busy)
    most = 1 + bool(asks) + len(pairs)
    if not fewest <= transitions <= most:
        raise ValueError(f"{states} states and {inputs} kinds of input have {fewest} to {most} transitions")
    moves = [Move(None, BEGINS, open_states[0], 1.0)]
    if asking is not None:
        moves.append(Move(asking, ANSWER, open_states[3 % len(open_states)], 1.0))
    moves += _drawn_moves(dice, open_states, busy, free, transitions - len(moves))
    return Machine(name, (*open_states, *ENDS), kinds, tuple(moves), asking)


def _drawn_moves(
    dice: random.Random, states: Sequence[str], busy: Sequence[str], kinds: Sequence[str], count: int
) -> Iterator[Move]:
    """Draw one way on and one to an end for each state; then any others, which are rarer and rarer."""
    left = {state: dice.sample(list(kinds), len(kinds)) for state in busy}
    rest = count - 2 * len(busy)
    # Every state is reached: the next one on the list is the usual way on.
    for state, after in pairwise([*states, ENDS[0]]):
        if state in left:
            yield Move(state, left[state].pop(), after, (1 - ENDING_SHARE) * dice.uniform(0.5, 0.8))
            yield Move(state, left[state].pop(), dice.choice(ENDS), ENDING_SHARE)
    others = [(state, kind) for state, unused in left.items() for kind in unused]
    for state, kind in sorted(dice.sample(others, rest)):
        roll = dice.random()
        target = state if roll < 0.15 else dice.choice(ENDS) if roll < 0.25 else dice.choice(states)
        yield Move(state, kind, target, (1 - ENDING_SHARE) * 0.3 * dice.random() ** 6)


# ---- as a workflow


def source_of(machine: Machine) -> str:
    """Return a module with the workflow: `workflow()` makes it, `app(url)` an app with it."""
    fields = "    case: str\n    amount: int\n    region: str\n"
    plain = "    case: str\n"
    classes = [_class(kind, fields if kind == BEGINS else plain) for kind in machine.inputs]
    classes += [_class(state, fields) for state in machine.states]
    classes += [_class("New", "    pass\n"), _class(COMMAND, plain), _class("Finished", plain)]
    inputs, states = " | ".join(machine.inputs), " | ".join(("New", *machine.states))
    decide = "\n".join(_decided(machine, move) for move in machine.moves)
    evolve = "\n".join(_evolved(move) for move in machine.moves)
    return _MODULE.format(
        classes="\n\n".join(classes),
        inputs=inputs,
        states=states,
        begins=BEGINS,
        name=machine.name,
        decide=decide,
        evolve=evolve,
        command=COMMAND,
        answer=ANSWER if ANSWER in machine.inputs else BEGINS,
        handler=_HANDLER if machine.asking is not None else "",
    )


def load(machine: Machine, folder: Path) -> Any:
    """Write the module into a folder, import it, and return it."""
    path = folder / f"{machine.name.lower()}_workflow.py"
    path.write_text(source_of(machine))
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def workflow_of(machine: Machine, folder: Path) -> Workflow[Any, Any, Any]:
    """Return the workflow, from a module that is written into a folder."""
    return load(machine, folder).workflow()


def _class(name: str, fields: str) -> str:
    return f"@dataclass(frozen=True)\nclass {name}:\n{fields}"


def _decided(machine: Machine, move: Move) -> str:
    decisions = ""
    if machine.ends(move.target):
        decisions = "Complete(Finished(message.case))" if move.target == ENDS[0] else 'Fail("dismissed")'
    elif move.target == machine.asking:
        decisions = f"Send({COMMAND}(message.case))"
    state = "New" if move.source is None else move.source
    return f"            case {state}(), {move.input}():\n                return [{decisions}]"


def _evolved(move: Move) -> str:
    holder, state = ("message", "New") if move.source is None else ("state", move.source)
    message = f"{move.input}() as message" if move.source is None else f"{move.input}()"
    made = f"{move.target}({holder}.case, {holder}.amount, {holder}.region)"
    return f"            case {state}(), Received({message}):\n                return {made}"


_HANDLER: Final = """
    @made.handler
    async def make_assessment(command: MakeAssessment) -> AssessmentMade:
        return AssessmentMade(command.case)
"""

_MODULE: Final = '''"""A workflow that was drawn by lot."""

from dataclasses import dataclass

from mainspring import Complete, Fail, Mainspring, Received, Send, Workflow


{classes}

class {name}(Workflow[{inputs}, {states}, {command} | Finished]):
    begins = {begins}
    initial_state = New()

    def route(self, message):
        return message.case

    def decide(self, message, state):
        match state, message:
{decide}

    def evolve(self, state, event):
        match state, event:
{evolve}

    def attributes(self, state):
        return {{}} if isinstance(state, New) else {{"amount": state.amount, "region": state.region}}


def workflow():
    return {name}()


def app(url):
    made = Mainspring(url)
    made.add({name}())
{handler}
    return made
'''

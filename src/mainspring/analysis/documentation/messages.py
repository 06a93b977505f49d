"""The parts of a page about messages and states: their fields, how they come, who carries them out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from mainspring.analysis.documentation.blocks import Cell, Code, Piece, Table, link_to, listed
from mainspring.analysis.documentation.subject import HandlerFacts, Subject
from mainspring.analysis.model import Field, Message, Output, State, Transition
from mainspring.analysis.texts import dwell_of

WAYS: Final = {
    "message": "a message",
    "timer": "a due timer",
    "answer": "the answer to a task",
    "result": "a handler's result",
    "reply": "another workflow's reply",
    "child": "a child's outcome",
    "join": "the join of a fan-out",
    "then": "what follows compensation",
    "undone": "a compensation that was carried out",
}


def states(subject: Subject) -> Table:
    """Return the table of states."""
    visited = {node.name: dwell_of(node) for node in subject.diagram.nodes if node.visits is not None}
    with_history = subject.diagram.instances is not None
    columns = ("state", "holds", "meaning", *(("instances",) if with_history else ()))
    rows = tuple(
        (
            (Code(state.name), *_marks(state)),
            _fields(state.fields),
            (state.doc,),
            *(((visited.get(state.name, _unvisited(state)),),) if with_history else ()),
        )
        for state in subject.machine.states
    )
    return Table(f"The states of {subject.machine.workflow}", columns, rows)


def _unvisited(state: State) -> str:
    return "all begin here" if state.initial else "never visited"


def _marks(state: State) -> Cell:
    marks = [
        *(["initial"] if state.initial else []),
        *(["an end"] if state.ended else []),
        *(["never reached"] if not state.reachable else []),
    ]
    return (f" ({', '.join(marks)})",) if marks else ()


def _fields(fields: Sequence[Field]) -> Cell:
    return listed([Code(f"{field.name}: {_type(field.type)}{'' if field.required else ' = …'}") for field in fields])


def _type(written: str) -> str:
    """Return a type without the modules in which its parts lie.

    >>> _type("tuple[shop.orders.Line, ...] | None")
    'tuple[Line, ...] | None'
    """
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", written)


def taken(subject: Subject) -> Table:
    """Return the table of the messages that a workflow takes."""
    rows = tuple(
        ((Code(message.name), *_begins(message)), _comes(subject, message), _fields(message.fields), (message.doc,))
        for message in subject.machine.inputs
    )
    return Table(f"What {subject.machine.workflow} takes", ("message", "comes as", "fields", "meaning"), rows)


def _begins(message: Message) -> Cell:
    return (" (begins an instance)",) if message.begins else ()


def _comes(subject: Subject, message: Message) -> Cell:
    """Return how an input comes. The code says that it comes; the app knows from whom."""
    handlers = [handler.name for handler in subject.handlers if message.name in handler.results]
    senders = subject.senders.get(message.name, ())
    # A message that is a result or another workflow's need not come from outside as well.
    known = bool(handlers or senders) and not message.begins
    pieces: list[Piece] = [WAYS[way] for way in message.ways if not (known and way in ("message", "result"))]
    comes: list[Cell] = [listed(pieces)] if pieces else []
    if handlers:
        comes.append(("the result of ", *listed([Code(name) for name in handlers])))
    if senders:
        comes.append(("from ", *listed([link_to(sender) for sender in senders])))
    return tuple(piece for place, cell in enumerate(comes) for piece in (*(("; ",) if place else ()), *cell))


def given(subject: Subject) -> Table:
    """Return the table of the messages that a workflow gives, and of who carries them out."""
    decided = _decided(subject.machine.transitions)
    rows = tuple(
        (
            (Code(message.name),),
            listed([*decided.get(message.name, ("nowhere, as far as the code could be read",))]),
            _carried_out(subject, message.name, decided.get(message.name, ())),
            _fields(message.fields),
            (message.doc,),
        )
        for message in subject.machine.outputs
    )
    columns = ("message", "decided as", "carried out by", "fields", "meaning")
    return Table(f"What {subject.machine.workflow} gives", columns, rows)


def _decided(transitions: Sequence[Transition]) -> dict[str, tuple[str, ...]]:
    """Return by which decisions each message is given, in the order of the code."""
    found: dict[str, dict[str, None]] = {}
    for output in (output for transition in transitions for output in transition.outputs):
        for name, decision in _gives(output):
            found.setdefault(name, {})[decision] = None
    return {name: tuple(decisions) for name, decisions in found.items()}


def _gives(output: Output) -> list[tuple[str, str]]:
    pairs = [(output.message, output.decision)] if output.message else []
    return [*pairs, (output.compensate, "compensation")] if output.compensate else pairs


def _carried_out(subject: Subject, name: str, decisions: Sequence[str]) -> Cell:
    pieces: list[Piece] = [Code(handler.name) for handler in subject.handlers if handler.message == name]
    pieces += [link_to(taker) for taker in subject.takers.get(name, ())]
    if name in subject.external:
        pieces.append("another process")
    if "Complete" in decisions:
        pieces.append("whoever waits for the result")
    if "Reply" in decisions:
        pieces.append("whoever asked")
    return listed(pieces) if pieces else ("nobody in this app",)


def handlers(subject: Subject) -> Table:
    """Return the table of handlers with their policies."""
    rows = tuple(
        (
            (Code(handler.name), *((" (subscribes)",) if handler.subscribes else ())),
            (Code(handler.message),),
            listed([Code(result) for result in handler.results]),
            ("; ".join(handler.policies),),
            (_first_line(handler),),
        )
        for handler in subject.handlers
    )
    columns = ("handler", "carries out", "returns", "policies", "meaning")
    return Table(f"The handlers of what {subject.machine.workflow} gives", columns, rows)


def _first_line(handler: HandlerFacts) -> str:
    return handler.doc.partition("\n\n")[0]

"""The sections of a workflow's page, and the index of all pages. A section that would be empty is left out.

The parts of a page about messages and states: their fields, how they come, who carries them out.

Each is written into a directory whole or not at all, and none is left there that is not true any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from mainspring.analysis.diagram.labels import dwell_of
from mainspring.analysis.documentation import html, markdown
from mainspring.analysis.documentation.blocks import (
    INDEX,
    Block,
    Cell,
    Code,
    Heading,
    Items,
    Page,
    Picture,
    Piece,
    Table,
    Text,
    link_to,
    listed,
    page_name,
    without_empty_columns,
)
from mainspring.analysis.documentation.stories import Told
from mainspring.analysis.documentation.subject import HandlerFacts, Subject
from mainspring.analysis.files import write_whole
from mainspring.analysis.reading.model import Field, Message, Output, State, Transition

_CHILDREN: Final = ("StartChild", "FanOut")


def page_of(subject: Subject) -> Page:
    """Return the page of a workflow."""
    return Page(page_name(subject.machine.workflow), subject.machine.workflow, tuple(_blocks(subject)))


def index_of(title: str, subjects: Sequence[Subject], told: str) -> Page:
    """Return the index. `told` says what the pages were made from."""
    rows = tuple(
        (
            (link_to(subject.machine.workflow),),
            (_first(subject.machine.doc),),
            listed([Code(message.name) for message in subject.machine.inputs if message.begins]),
            (str(len(subject.machine.states)),),
            (f"{subject.diagram.instances:,}" if subject.diagram.instances is not None else "",),
        )
        for subject in subjects
    )
    table = Table("All workflows", ("workflow", "purpose", "begins with", "states", "instances"), rows)
    return Page(INDEX, title, (Heading(title, 1), Text((told,)), without_empty_columns(table)))


def _first(doc: str) -> str:
    return doc.partition("\n\n")[0]


def _blocks(subject: Subject) -> Iterator[Block]:
    machine = subject.machine
    yield Heading(machine.workflow, 1)
    for paragraph in machine.doc.split("\n\n"):
        if paragraph.strip():
            yield Text((paragraph,))
    yield from _settings(subject)
    yield Heading("Diagram", 2)
    yield Picture(subject.diagram)
    yield from _section("States", _states(subject))
    yield from _section("Transitions", _transitions(subject))
    yield from _section("What it takes", _taken(subject))
    yield from _section("What it gives", _given(subject))
    yield from _section("Timeouts", _timeouts(machine.transitions))
    yield from _section("Tasks", _tasks(machine.transitions))
    yield from _section("Handlers", _handlers(subject))
    yield from _section("Children", _children(subject))
    yield from _section("Schedules", _schedules(subject))
    for story in subject.stories:
        yield from _story(story, first=story is subject.stories[0])
    yield from _unresolved(subject)


def _section(title: str, table: Table) -> Iterator[Block]:
    if table.rows:
        yield Heading(title, 2)
        yield without_empty_columns(table)


def _settings(subject: Subject) -> Iterator[Block]:
    machine = subject.machine
    begins = listed([Code(message.name) for message in machine.inputs if message.begins])
    items: list[Cell] = [("Begins with: ", *begins)] if begins else []
    items += [(f"{label}: {text}",) for label, text in subject.settings]
    if machine.place is not None:
        items.append(("Code: ", Code(str(machine.place))))
    yield Items(tuple(items))


# ---- what the code does


def _transitions(subject: Subject) -> Table:
    rows = tuple(
        (
            (Code(transition.source),),
            (Code(transition.message),),
            (Code(transition.guard),) if transition.guard else (),
            _decides(transition),
            _after(transition),
            _written(transition, subject),
        )
        for transition in subject.machine.transitions
    )
    columns = ("in state", "message", "if", "decides", "next state", "written at")
    return Table(f"The transitions of {subject.machine.workflow}", columns, rows)


def _written(transition: Transition, subject: Subject) -> Cell:
    """Return where a transition is written: the name of the file is enough where it is that of the workflow."""
    place, home = transition.decided, subject.machine.place
    if place is None:
        return ()
    near = home is not None and place.file == home.file
    return (Code(f"{PurePath(place.file).name}:{place.line}" if near else str(place)),)


def _decides(transition: Transition) -> Cell:
    if not transition.outputs:
        return ("nothing",)
    return listed([Code(str(output)) for output in transition.outputs])


def _after(transition: Transition) -> Cell:
    stays: Cell = ("stays",) if transition.target == transition.source else (Code(transition.target),)
    return (*stays, f", {transition.ends}") if transition.ends else stays


def _decided_as(transitions: Sequence[Transition], *decisions: str) -> Iterator[tuple[Transition, Output]]:
    for transition in transitions:
        for output in transition.outputs:
            if output.decision in decisions:
                yield transition, output


def _timeouts(transitions: Sequence[Transition]) -> Table:
    """Return what is scheduled: by which step, when it is due, and which steps cancel it."""
    cancelled: dict[str, dict[str, None]] = {}
    for transition, output in _decided_as(transitions, "CancelSchedule"):
        cancelled.setdefault(output.message or "", {})[transition.message] = None
    rows = {
        (
            (Code(output.message or ""),),
            _due(output),
            (Code(transition.message), " in ", Code(transition.source)),
            listed([Code(name) for name in cancelled.get(output.message or "", ())]),
        ): None
        for transition, output in _decided_as(transitions, "Schedule")
    }
    return Table("Timeouts", ("message", "due", "scheduled by", "cancelled by"), tuple(rows))


def _due(output: Output) -> Cell:
    """Return when something comes due: in words where that is known, else as it is written."""
    return (output.when,) if output.when else (Code(output.detail),) if output.detail else ()


def _tasks(transitions: Sequence[Transition]) -> Table:
    """Return what people are asked: by which step, what they can answer, what reminds and escalates, and for whom."""
    rows: dict[tuple[Cell, ...], None] = {}
    for transition, output in _decided_as(transitions, "Ask"):
        answers = len(output.messages) - output.timers
        row = (
            (Code(output.message or ""),),
            (Code(transition.message), " in ", Code(transition.source)),
            listed([Code(name) for name in output.messages[:answers]]),
            listed([Code(name) for name in output.messages[answers:]]),
            (output.when,),
            (Code(output.detail),) if output.detail else (),
        )
        rows[row] = None
    columns = ("task", "asked by", "answers", "reminders, escalation", "due", "as it is written")
    return Table("Tasks", columns, tuple(rows))


def _children(subject: Subject) -> Table:
    rows = {
        (
            (Code(output.message or ""), *((" (many)",) if output.repeated else ())),
            (output.decision,),
            (Code(transition.message), " in ", Code(transition.source)),
            listed([link_to(taker) for taker in subject.takers.get(output.message or "", ())]),
        ): None
        for transition, output in _decided_as(subject.machine.transitions, *_CHILDREN)
    }
    return Table("Children", ("message", "as", "started by", "workflow"), tuple(rows))


def _schedules(subject: Subject) -> Table:
    rows = tuple(
        ((schedule.name,), (Code(schedule.calendar),), (Code(schedule.message),), (schedule.catch_up,))
        for schedule in subject.schedules
    )
    return Table("Schedules", ("schedule", "calendar", "sends", "missed times"), rows)


# ---- what instances did


def _story(story: Told, *, first: bool) -> Iterator[Block]:
    if first:
        yield Heading("Stories", 2)
        yield Text(("Instances that really ended: of each way to end, the one that took the fewest events.",))
    ended = f"{story.status} in {story.state}" if story.state else story.status
    yield Heading(f"{ended}, after {story.took}", 3)
    if story.like > 1:
        yield Text((f"{story.like:,} instances ended so.",))
    rows = tuple(
        (
            (line.after,),
            (line.event,),
            (Code(line.what),) if line.what else (),
            (Code(line.state),) if line.state else (),
        )
        for line in story.lines
    )
    yield Table(f"A story: {ended}", ("after", "event", "message", "state"), rows)


def _unresolved(subject: Subject) -> Iterator[Block]:
    places = subject.machine.unresolved
    if places:
        yield Heading("What could not be read", 2)
        yield Text(("The code says more here than could be read from it, so the tables above may be incomplete.",))
        yield Items(tuple((Code(str(place)),) for place in places))


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


def _states(subject: Subject) -> Table:
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


def _taken(subject: Subject) -> Table:
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


def _given(subject: Subject) -> Table:
    """Return the table of the messages that a workflow sends, with who carries them out."""
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
        pieces.append("the caller that waits for the result")
    if "Reply" in decisions:
        pieces.append("the caller that asked")
    return listed(pieces) if pieces else ("nothing in this app",)


def _handlers(subject: Subject) -> Table:
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


Format: TypeAlias = Literal["md", "html"]

_WRITERS: Final[dict[Format, tuple[Callable[[Page], str], str, str]]] = {
    "md": (markdown.to_markdown, markdown.ENDING, markdown.MARK),
    "html": (html.to_html, html.ENDING, html.MARK),
}


class Written(Struct, frozen=True):
    """What was done: the files that were written, and those of workflows that are gone, which were removed."""

    written: tuple[str, ...]
    removed: tuple[str, ...]


def write_pages(directory: Path, pages: Sequence[Page], format: Format) -> Written:
    """Write pages. Only files that were written by this very function before are ever removed."""
    write, ending, mark = _WRITERS[format]
    directory.mkdir(parents=True, exist_ok=True)
    names = [f"{page.name}{ending}" for page in pages]
    for name, page in zip(names, pages, strict=True):
        write_whole(directory / name, write(page))
    stale = [path for path in sorted(directory.glob(f"*{ending}")) if path.name not in names and _ours(path, mark)]
    for path in stale:
        path.unlink()
    return Written(tuple(names), tuple(path.name for path in stale))


def _ours(path: Path, mark: str) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return mark in file.read(1_000)

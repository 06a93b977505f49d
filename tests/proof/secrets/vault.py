"""An app into which a marked secret goes through every way that there is, each with a mark of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from mainspring import (
    Ask,
    Breaker,
    ChildFailed,
    Compensate,
    Complete,
    Decisions,
    DoNotRetryError,
    Event,
    Fail,
    FanOut,
    FeedEntry,
    Mainspring,
    Publish,
    Received,
    Reply,
    Retry,
    RetryLaterError,
    Schedule,
    Send,
    SendFailed,
    StartChild,
    Workflow,
)
from mainspring.app.internals import internals_of
from mainspring.app.undelivered import keep_undelivered
from mainspring.errors import DuplicateIdError, MainspringError
from mainspring.flows import receive
from mainspring.port.records import InstanceFilter, Ref
from tests.support.waiting import until

HANDLED: Final = ("works", "is tried again", "gives up")


def secret(way: str) -> str:
    """Return the secret that goes this way: nothing else looks like it, and it tells which way it went."""
    return f"zQx{way.replace(' ', '')}7Kv"


@dataclass(frozen=True)
class Open:
    id: str
    card: str


@dataclass(frozen=True)
class Do:
    """What is to be done with a secret."""

    id: str
    way: str
    card: str


@dataclass(frozen=True)
class Told:
    id: str
    card: str


@dataclass(frozen=True)
class Joined:
    results: tuple[Told, ...]
    failures: tuple[ChildFailed, ...]


@dataclass(frozen=True)
class Work:
    id: str
    way: str
    card: str


@dataclass(frozen=True)
class Ring:
    id: str
    card: str


@dataclass(frozen=True)
class Begin:
    id: str
    card: str


@dataclass(frozen=True)
class Stranger:
    card: str


@dataclass(frozen=True)
class Closed:
    card: str = ""


@dataclass(frozen=True)
class Opened:
    card: str


@dataclass(frozen=True)
class Torn:
    card: str


In = Open | Do | Told | Joined
Out = Work | Ring | Begin | Told


class Vault(Workflow[In, Closed | Opened, Out]):
    """Does what it is told, well or badly."""

    begins = Open
    initial_state = Closed()
    snapshot_every = 1
    expected_within = timedelta(microseconds=1)

    def route(self, message: In) -> str | None:
        if isinstance(message, Joined):
            return None
        if getattr(message, "way", "") == "cannot be routed":
            raise ValueError(message.card)
        return message.id

    def evolve(self, state: Closed | Opened, event: Event[In, Out]) -> Closed | Opened | None:
        match event:
            case Received(Open(card=card)):
                return Opened(card)
            case Received(Do(way="is torn", card=card)):
                return Torn(card)  # pyright: ignore[reportReturnType]  it is no state of its own
            case Received(Do(way="evolves badly", card=card)):
                raise ValueError(card)
        return None

    def decide(self, message: In, state: Closed | Opened) -> Decisions[In, Out] | None:
        match message:
            case Do(way="has no case"):
                return None
            case Do(way="raises", card=card):
                raise ValueError(f"{card} is no good")
            case Do(way="decides a stranger", card=card):
                return [Send(Stranger(card))]  # pyright: ignore[reportReturnType]  it is not declared
            case Do(way="decides nothing", card=card):
                return [card]  # pyright: ignore[reportReturnType]  it is no decision
            case Do(way="goes on behind its end", card=card):
                return [Complete(), Fail(card)]
            case Do(way="fails", card=card):
                return [Fail(f"{card} did not work")]
            case Do(id, "completes", card):
                return [Complete(Told(id, card))]
            case Do(id, "is undone", card):
                return [Send(Work(id, "works", card), compensate=Work(id, "undoes", card))]
            case Do(id, "undoes all", card):
                return [Compensate(card)]
            case Do(id, "asks", card):
                return [Ask("a title", role="manager", answer=Told, data={"note": card})]
            case Do(id, "waits", card):
                return [Schedule(Do(id, "fires", card), after=timedelta(days=1), key="a key")]
            case Do(id, "replies", card):
                return [Reply(Told(id, card))]
            case Do(id, "publishes", card):
                return [Publish(Told(id, card))]
            case Do(id, "begins a child", card):
                return [StartChild(Begin(id, card))]
            case Do(id, "fans out", card):
                return [FanOut([Begin(f"{id}-{n}", card) for n in range(2)], into=Joined)]
            case Do(id, "breaks", card):
                return [Send(Ring(id, card))]
            case Do(id, way, card) if way in HANDLED:
                return [Send(Work(id, way, card))]
        return []


class Child(Workflow[Begin, Closed, Told]):
    """Fails as soon as it begins."""

    begins = Begin
    initial_state = Closed()

    def route(self, message: Begin) -> str | None:
        return f"child-{message.id}"

    def evolve(self, state: Closed, event: Event[Begin, Told]) -> Closed | None:
        return None

    def decide(self, message: Begin, state: Closed) -> Decisions[Begin, Told] | None:
        return [Fail(message.card)]


@dataclass(frozen=True)
class Hear:
    id: str
    card: str


class Listener(Workflow[Hear | Told | SendFailed, Closed, Work]):
    """Is told that its command failed for good."""

    begins = Hear
    initial_state = Closed()

    def route(self, message: Hear | Told | SendFailed) -> str | None:
        return message.id if isinstance(message, Hear) else None

    def evolve(self, state: Closed, event: Event[Hear | Told | SendFailed, Work]) -> Closed | None:
        return None

    def decide(
        self, message: Hear | Told | SendFailed, state: Closed
    ) -> Decisions[Hear | Told | SendFailed, Work] | None:
        return [Send(Work(message.id, "gives up", message.card))] if isinstance(message, Hear) else []


@dataclass(frozen=True)
class Jot:
    id: str
    card: str


@dataclass(frozen=True)
class Note:
    card: str = ""


class Slip(Workflow[Jot, Note, Told]):
    """Keeps its state and no history; ends, and begins anew badly."""

    history = "state"
    begins = Jot
    initial_state = Note()

    def route(self, message: Jot) -> str | None:
        return message.id

    def evolve(self, state: Note, event: Event[Jot, Told]) -> Note | None:
        return Note(event.message.card) if isinstance(event, Received) else None

    def decide(self, message: Jot, state: Note) -> Decisions[Jot, Told] | None:
        return []


@dataclass(frozen=True)
class Turn:
    id: str
    card: str


class Again(Workflow[Turn, Note, Told]):
    """Begins anew after its end, the second time badly."""

    again = "anew"
    begins = Turn
    initial_state = Note()

    def route(self, message: Turn) -> str | None:
        return message.id

    def evolve(self, state: Note, event: Event[Turn, Told]) -> Note | None:
        return None

    def decide(self, message: Turn, state: Note) -> Decisions[Turn, Told] | None:
        if message.card:
            raise ValueError(message.card)
        return [Complete()]


@dataclass(frozen=True)
class Hold:
    id: str
    card: str


@dataclass(frozen=True)
class LetGo:
    id: str


def add_all(app: Mainspring, *, purging: bool = False) -> None:
    """Add the workflows, handlers and read models to an app. One that purges would wait for a read model that fails."""
    app.add(Vault(), Child(), Listener(), Slip(), Again())

    @app.handler(idempotency_key=lambda work: f"{work.way}:{work.id}")
    async def work(command: Work) -> Told:
        if command.way == "is tried again":
            raise RetryLaterError(f"{command.card} is no good", timedelta(hours=1))
        if command.way != "works":
            raise DoNotRetryError(f"{command.card} is no good")
        return Told(command.id, command.card)

    @app.handler(breaker=Breaker(failures=1), retry=Retry(first=timedelta(hours=1), cap=timedelta(hours=1)))
    async def ring(command: Ring) -> Told:
        raise ConnectionError(command.card)

    @app.projections.add(key=lambda entry: entry.instance, workflows=[Vault])
    def opened_vaults(document: Opened | None, entry: FeedEntry) -> Opened | None:
        return Opened(entry.input.card) if isinstance(entry.input, Open) else document

    @app.flow(id="id")
    async def holding(hold: Hold) -> None:
        held = f"{hold.card} is held"
        await receive(LetGo)
        assert held

    if purging:
        return

    @app.projections.add(key=lambda entry: entry.instance, workflows=[Vault])
    def failing(document: Opened | None, entry: FeedEntry) -> Opened | None:
        match entry.input:
            case Open(card=card):
                raise ValueError(f"{card} cannot be folded")
            case _:
                return document


WAYS: Final = {
    **dict.fromkeys(
        ("has no case", "raises", "decides a stranger", "decides nothing", "goes on behind its end"), "suspended"
    ),
    **dict.fromkeys(
        ("is torn", "evolves badly", "undoes all", "gives up", "begins a child", "is suspended"), "suspended"
    ),
    **dict.fromkeys(("asks", "waits", "replies", "publishes", "fans out", "works", "is tried again"), "running"),
    "breaks": "running",
    "fails": "failed",
    "completes": "completed",
    "clashes": "running",
    "is told": "running",
    "is cancelled": "cancelled",
    "is terminated": "terminated",
    "is jotted": "running",
    "is held": "running",
    "begins anew": "completed",
    **dict.fromkeys(("has no instance", "cannot be routed", "comes undelivered"), "none"),
}
"""The ways, and how an instance stands that went one; those without one leave a letter, or an error of their sender."""
MARKS: Final = [secret(way) for way in (*WAYS, "opens", "answers")]


async def go(app: Mainspring) -> None:
    """Let a secret go each way, and return when all have arrived."""
    for way in WAYS:
        await (_SPECIAL.get(way) or _done)(app, way)
    await until(lambda: _settled(app))
    (task,) = await app.tasks.list(role="manager")
    await app.tasks.complete(task.id, Told("asks", secret("answers")), actor="ann", roles=("manager",))


async def _settled(app: Mainspring) -> bool:
    store = internals_of(app).engine.store
    rows = {row.id: row for row in await store.instances(InstanceFilter(), 1_000)}
    stand = {way: rows[way].status if way in rows else "none" for way in WAYS}
    tried = {claim.instance: claim.attempts for claim in await store.outputs(None, timers=False, limit=1_000)}
    stopped = [each.error for each in await store.checkpoints() if each.error is not None]
    letters = {letter.instance.partition("/")[2] for letter in await app.dead_letters()}
    return (
        stand == WAYS
        and bool(tried.get("is tried again") and tried.get("breaks") and stopped)
        and letters >= {"gives up", "begins anew", "has no instance", "a door", "undoes all"}
        and await _took(app, "works", "Told")
        and await _took(app, "fans out", "Joined")
        and await _took(app, "is told", "SendFailed", Listener)
        and await _took(app, "publishes", "Told")
    )


async def _done(app: Mainspring, way: str) -> None:
    await app.send(Open(way, secret("opens")))
    if way == "undoes all":
        await app.send(Do(way, "is undone", secret(way)))
        await until(lambda: _took(app, way, "Told"))
    await app.send(Do(way, way, secret(way)))


async def _operated(app: Mainspring, way: str) -> None:
    await app.send(Open(way, secret("opens")))
    instance = app.instance(Vault, way)
    act: dict[str, Callable[..., Awaitable[None]]] = {
        "is suspended": instance.suspend,
        "is cancelled": instance.cancel,
        "is terminated": instance.terminate,
    }
    await act[way](secret(way), actor="ann")


async def _without_instance(app: Mainspring, way: str) -> None:
    await app.send(Do(way, way, secret(way)))


async def _unroutable(app: Mainspring, way: str) -> None:
    await _refused(app.send(Do(way, way, secret(way))))


async def _clashing(app: Mainspring, way: str) -> None:
    await app.send(Open(way, secret("opens")), id=way)
    await _refused(app.send(Open(way, secret(way)), id=way), DuplicateIdError)


async def _jotted(app: Mainspring, way: str) -> None:
    for _ in range(3):
        await app.send(Jot(way, secret(way)))


async def _listening(app: Mainspring, way: str) -> None:
    await app.send(Hear(way, secret(way)))


async def _held(app: Mainspring, way: str) -> None:
    await app.send(Hold(way, secret(way)))


async def _anew(app: Mainspring, way: str) -> None:
    await (await app.send(Turn(way, ""))).result()
    await app.send(Turn(way, secret(way)))


async def _undelivered(app: Mainspring, way: str) -> None:
    said = secret(way)
    headers = {"content-type": "application/json", "note": said}
    await keep_undelivered(
        internals_of(app).engine,
        "a door",
        id="u-1",
        body=said.encode(),
        headers=headers,
        reason="a rule",
        error=ValueError(said),
    )


async def _refused(sending: Awaitable[Any], kind: type[MainspringError] = MainspringError) -> None:
    try:
        await sending
    except kind:
        return
    raise AssertionError("it was not refused")


_SPECIAL: Final[dict[str, Callable[[Mainspring, str], Awaitable[None]]]] = {
    "is suspended": _operated,
    "is cancelled": _operated,
    "is terminated": _operated,
    "has no instance": _without_instance,
    "cannot be routed": _unroutable,
    "clashes": _clashing,
    "is jotted": _jotted,
    "is held": _held,
    "is told": _listening,
    "begins anew": _anew,
    "comes undelivered": _undelivered,
}


async def _took(app: Mainspring, id: str, type: str, workflow: type[Workflow[Any, Any, Any]] = Vault) -> bool:
    rows = await internals_of(app).engine.store.stream(Ref(workflow.__name__, id), 0, 100)
    return any((row.type or "").endswith(type) and row.kind is not None for row in rows)

"""The worker's app: each parcel that is posted is weighed once, and reported as posted."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from mainspring import Complete, Context, Decisions, Event, Mainspring, Received, Retry, Send, Workflow
from mainspring.brokers.brokers import Brokers
from mainspring.brokers.routing import open_broker
from tests.proof.broker_faults.doomed import DoomedBroker
from tests.proof.crash.files import Place
from tests.proof.crash.worker import World

GROUP: Final = "post"
POSTS: Final = "parcels.posts"
POSTED: Final = "parcels.posted"
NOTES: Final = 2
# Few, so that at any moment some are taken, some weighed and some reported.
PREFETCH: Final = 50
# A broker that is started again is there within seconds: nobody waits a minute for it here.
SOON: Final = Retry(max_attempts=10_000, first=timedelta(milliseconds=100), cap=timedelta(seconds=1))


@dataclass(frozen=True)
class Post:
    parcel: str


@dataclass(frozen=True)
class Note:
    """Comes behind the post, and behind the note before it."""

    parcel: str
    number: int


@dataclass(frozen=True)
class Weigh:
    parcel: str


@dataclass(frozen=True)
class Weighed:
    parcel: str


@dataclass(frozen=True)
class Posted:
    parcel: str
    notes: tuple[int, ...]


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class UnderWay:
    weighed: bool = False
    notes: tuple[int, ...] = ()


Input = Post | Note | Weighed
Output = Weigh | Posted
State = New | UnderWay


class Parcel(Workflow[Input, State, Output]):
    begins = Post
    initial_state = New()

    def route(self, message: Input) -> str:
        return message.parcel

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Post()):
                return UnderWay()
            case UnderWay(weighed, notes), Received(Note(_, number)):
                return UnderWay(weighed, (*notes, number))
            case UnderWay(_, notes), Received(Weighed()):
                return UnderWay(weighed=True, notes=notes)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Post(parcel), New():
                return [Send(Weigh(parcel))]
            case Note(parcel, number), UnderWay(True, notes) if len(notes) == NOTES - 1:
                return [Send(Posted(parcel, (*notes, number))), Complete()]
            case Weighed(parcel), UnderWay(False, notes) if len(notes) == NOTES:
                return [Send(Posted(parcel, notes)), Complete()]
            case ((Note() | Weighed()), UnderWay()):
                return []


def app_of(place: Place, url: str, options: dict[str, Any]) -> Mainspring:
    """Return the app, with a handler that writes down what it does."""
    app = Mainspring(place.url)
    app.add(Parcel())
    world = World(place.effects)

    @app.handler
    async def weigh(command: Weigh, context: Context) -> Weighed:
        world.make(context, command.parcel)
        return Weighed(command.parcel)

    brokers = Brokers(app, GROUP)
    brokers.add("main", DoomedBroker(open_broker(url, options), place.folder))
    brokers.endpoint("posts", "main", POSTS)
    brokers.endpoint("posted", "main", POSTED)
    brokers.receive("posts", Post, Note, prefetch=PREFETCH)
    brokers.send(Posted, to="posted", retry=SOON, breaker=None)
    return app


async def work(folder: Path, url: str, options: dict[str, Any]) -> None:
    """Work until asked to stop."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with app_of(Place(folder), url, options):
        await stop.wait()

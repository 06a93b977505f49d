"""A drill: parcels are posted, processes are killed, and what came out is judged."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from typing import Any, Final, Literal, get_args

from msgspec import json

from mainspring.brokers.port import Broker, Delivery, Outgoing, Subscription
from mainspring.brokers.routing import open_broker
from tests.proof.broker_faults.doomed import Point, doom
from tests.proof.broker_faults.parcels import GROUP, NOTES, POSTED, POSTS
from tests.proof.broker_faults.servers import Killable
from tests.proof.crash.files import Place, read_lines
from tests.proof.crash.forked import Forked
from tests.proof.crash.tables import tables

Victim = Literal["worker", "broker"] | Point

# So many parcels are under way at most: at a kill there are some at every station.
UNDER_WAY_SHARE: Final = 5
# So many are posted at once at most, and never all that are left when somebody is doomed.
POSTS_AT_ONCE: Final = 50
POSTS_SHARE: Final = 6
COLLECTOR: Final = "collector"
PREFETCH: Final = 500
WAIT_SECONDS: Final = 0.2
AGAIN_SECONDS: Final = 0.1
POST_SECONDS: Final = 2
# Within this, what was out at a killed worker is known to the broker to be out no more.
HEARD_SECONDS: Final = 60
QUIET_SECONDS: Final = 120
END_SECONDS: Final = 60


@dataclass
class Outcome:
    """How a drill went."""

    name: str
    parcels: int
    seconds: float = 0.0
    kills: Counter[Victim] = field(default_factory=Counter[Victim])
    unconfirmed: int = 0
    """Messages that the sender had to send again, as nobody told it that they had arrived."""
    came_again: int = 0
    """What the collector got more than once under the same id: a redelivery, or published twice."""
    complaints: list[str] = field(default_factory=list[str])

    def row(self) -> str:
        kills = ", ".join(f"{count} × {_told(victim)}" for victim, count in sorted(self.kills.items()))
        told = "none" if not self.complaints else f"**{len(self.complaints)}**"
        figures = f"{self.parcels:,} | {kills} | {self.seconds:.0f} s | {self.unconfirmed:,} | {self.came_again:,}"
        return f"| {self.name} | {figures} | {told} |"


@dataclass
class Stage:
    """What a drill needs to know of a broker."""

    name: str
    url: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    servers: Sequence[Killable] = ()
    """Those that may be killed, in turn."""
    prepare: Callable[[], Awaitable[None]] | None = None
    """Makes what the broker must have beforehand."""


class Drill:
    """Runs once.

    A broker is killed while a post is on its way to it, of which its sender then does not know whether it arrived; not
    if that is not `patient`: some clients wait ten seconds for an answer.
    """

    def __init__(
        self, stage: Stage, folder: Path, parcels: int, kills: Sequence[Victim], *, patient: bool = True
    ) -> None:
        self._patient = patient
        self._stage = stage
        self._place = Place(folder)
        self._parcels = [f"p-{number}" for number in range(parcels)]
        self._kills = list(kills)
        self._outcome = Outcome(stage.name, parcels)
        self._broker: Broker = open_broker(stage.url, stage.options)
        self._posting = asyncio.Event()
        self._is_over = False
        self._confirmed = 0
        self._ids: dict[str, set[str]] = {}
        self._worker: Forked | None = None

    async def run(self) -> Outcome:
        """Post, kill, collect and judge."""
        began = time.monotonic()
        if self._stage.prepare is not None:
            await self._stage.prepare()
        async with AsyncExitStack() as exits:
            await self._broker.open()
            exits.push_async_callback(self._broker.close)
            self._start_worker()
            exits.callback(self._end_worker)
            helpers = [asyncio.ensure_future(part) for part in (self._post(), self._collect())]
            try:
                await self._watch(helpers)
            finally:
                # Clients that use `wait_for` may lose a cancellation in Python 3.11: so it is said besides.
                self._is_over = True
                for helper in helpers:
                    helper.cancel()
                await asyncio.gather(*helpers, return_exceptions=True)
        self._outcome.seconds = time.monotonic() - began
        self.judge()
        return self._outcome

    # ---- outside

    async def _post(self) -> None:
        """Send each parcel until the broker has confirmed it, and not too many ahead of what comes out."""
        ahead = len(self._parcels) // UNDER_WAY_SHARE
        at_once = max(1, min(POSTS_AT_ONCE, len(self._parcels) // POSTS_SHARE))
        for begin in range(0, len(self._parcels), at_once):
            while begin - len(self._ids) > ahead:  # noqa: ASYNC110  what it waits for is counted elsewhere
                await asyncio.sleep(0.01)
            # A note is sent when the one before it is confirmed: else it could overtake it when that is sent again.
            for number in range(NOTES + 1):
                await self._send([_message(parcel, number) for parcel in self._parcels[begin : begin + at_once]])

    async def _send(self, left: list[Outgoing]) -> None:
        while left:
            left = await self._unconfirmed(left)
            self._outcome.unconfirmed += len(left)
            await asyncio.sleep(AGAIN_SECONDS if left else 0)  # a broker that is away is not asked in a loop

    async def _unconfirmed(self, messages: list[Outgoing]) -> list[Outgoing]:
        self._posting.set()
        try:
            outcomes = await self._broker.publish(messages)
        except Exception:  # noqa: BLE001  it is away; all are sent again
            return messages
        finally:
            self._posting.clear()
        left = [message for message, outcome in zip(messages, outcomes, strict=True) if outcome is not None]
        self._confirmed += len(messages) - len(left)
        return left

    async def _collect(self) -> None:
        """Take what comes out, until it is over."""
        while not self._is_over:
            subscription: Subscription | None = None
            try:
                subscription = await self._broker.subscribe(POSTED, COLLECTOR, PREFETCH)
                while not self._is_over:
                    deliveries = await subscription.receive(PREFETCH, WAIT_SECONDS)
                    # In this order: an acknowledgement may be heard though its answer is lost with the broker.
                    self.note(deliveries)
                    await subscription.acknowledge(deliveries)
            except Exception:  # noqa: BLE001  it is away, or was: again
                await asyncio.sleep(AGAIN_SECONDS)  # a broker says how much waits only when asked
            finally:
                if subscription is not None:
                    await subscription.close()

    def note(self, deliveries: list[Delivery]) -> None:
        """Count what came out."""
        for delivery in deliveries:
            told = json.decode(delivery.body)
            parcel = told["parcel"]
            if told["notes"] != list(range(1, NOTES + 1)):
                self._complain(f"the notes of {parcel} came in the order {told['notes']}")
            ids = self._ids.setdefault(parcel, set())
            id = delivery.headers["ce-id"]
            self._outcome.came_again += id in ids
            ids.add(id)

    # ---- killing

    async def _watch(self, helpers: Sequence[asyncio.Future[None]]) -> None:
        """Kill as often as planned, at equal distances, and return when all is out or nothing moves any more."""
        share = len(self._parcels) / (len(self._kills) + 1)
        moved, seen = time.monotonic(), 0
        while len(self._ids) < len(self._parcels) or not helpers[0].done():
            await asyncio.sleep(0.01)  # parcels, kills and a standstill are looked for together
            if len(self._ids) > seen:
                moved, seen = time.monotonic(), len(self._ids)
            if self._kills and seen >= share * (sum(self._outcome.kills.values()) + 1):
                await self._kill(self._kills.pop(0))
                moved = time.monotonic()
            if time.monotonic() - moved > QUIET_SECONDS:
                self._complain(f"nothing came for {QUIET_SECONDS} s, after {seen:,} parcels")
                return
        await self._see_all_acknowledged()

    async def _kill(self, victim: Victim) -> None:
        self._outcome.kills[victim] += 1
        if victim == "broker":
            with suppress(TimeoutError):
                async with asyncio.timeout(POST_SECONDS if self._patient else 0):
                    await self._posting.wait()
            server = self._stage.servers[(self._outcome.kills[victim] - 1) % len(self._stage.servers)]
            server.kill()
            await asyncio.to_thread(server.start)
            return
        if victim == "worker":
            self._end_worker(SIGKILL)
        else:
            await self._see_it_die(victim)
        await self._see_durable_before_acknowledged()
        self._start_worker()

    async def _see_it_die(self, point: Point) -> None:
        """Wait until the worker has come to a point at which it kills itself."""
        doom(self._place.folder).write_text(point)
        ends = time.monotonic() + END_SECONDS
        while self._worker is not None and not self._worker.ended():
            if time.monotonic() > ends:
                self._complain(f"the worker did not die {point}")
                self._worker.send(SIGKILL)
                self._worker.wait(END_SECONDS)
            await asyncio.sleep(0.01)  # a process of another's children: its end has to be looked for
        self._worker = None

    async def _see_durable_before_acknowledged(self) -> None:
        """While no worker is there, look whether the broker was told of anything that is not in the database."""
        accepted = self._accepted()
        ends = time.monotonic() + HEARD_SECONDS
        while True:
            confirmed = self._confirmed  # before the lag is asked for: meanwhile more may arrive
            lag = await self._lag()
            if lag is not None and confirmed - lag <= accepted:
                return
            if time.monotonic() > ends:
                self._complain(
                    f"of {confirmed:,} messages {lag} wait at the broker, and only {accepted:,} were accepted"
                )
                return
            await asyncio.sleep(AGAIN_SECONDS)  # a broker says how much waits only when asked

    async def _see_all_acknowledged(self) -> None:
        ends = time.monotonic() + HEARD_SECONDS
        while (lag := await self._lag()) != 0:
            if time.monotonic() > ends:
                self._complain(f"{lag} messages still wait at the broker")
                return
            await asyncio.sleep(AGAIN_SECONDS)  # a broker says how much waits only when asked

    async def _lag(self) -> int | None:
        try:
            return await self._broker.lag(POSTS, GROUP)
        except Exception:  # noqa: BLE001  it is away for a moment
            return None

    def _accepted(self) -> int:
        with tables(self._place) as now:
            if now is None:
                return 0
            stepped = now.rows("SELECT count(*) FROM events WHERE type IN ('Post', 'Note')")[0][0]
            return stepped + now.rows("SELECT count(*) FROM inbox WHERE type IN ('Post', 'Note')")[0][0]

    def _start_worker(self) -> None:
        options = json.encode(self._stage.options).decode()
        arguments = (str(self._place.folder), self._stage.url, options)
        self._worker = Forked("tests.proof.broker_faults.worker_process", arguments, self._place.log)

    def _end_worker(self, signal: Signals = SIGTERM) -> None:
        if self._worker is not None:
            if self._worker.ended():
                self._complain("a worker ended by itself")
            self._worker.send(signal)
            self._worker.wait(END_SECONDS)
            self._worker = None

    # ---- judging

    def judge(self) -> list[str]:
        """Return what there is to complain of."""
        effects = Counter(line["what"] for line in read_lines(self._place.effects))
        for parcel in self._parcels:
            if effects[parcel] != 1:
                self._complain(f"{parcel} was weighed {effects[parcel]} times")
            if len(self._ids.get(parcel, ())) != 1:
                self._complain(f"{parcel} was reported under {len(self._ids.get(parcel, ()))} ids")
        if strange := self._ids.keys() - set(self._parcels):
            self._complain(f"nobody posted {sorted(strange)[:3]}")
        self._judge_tables()
        if self._outcome.kills.total() == 0 or self._kills:
            self._complain(f"not all were killed who should be: {self._kills} are left")
        return self._outcome.complaints

    def _judge_tables(self) -> None:
        with tables(self._place) as now:
            if now is None:
                self._complain("there is no database")
                return
            counted = "SELECT status, count(*) FROM instances WHERE workflow = 'Parcel' GROUP BY status"
            statuses = {row[0]: row[1] for row in now.rows(counted)}
            if statuses != {"completed": len(self._parcels)}:
                self._complain(f"of {len(self._parcels):,} parcels there are {statuses}")
            for table in ("inbox", "outbox", "dead_letters"):
                if count := now.rows(f"SELECT count(*) FROM {table}")[0][0]:  # noqa: S608  our own names
                    self._complain(f"{count:,} are left in {table}")

    def _complain(self, text: str) -> None:
        self._outcome.complaints.append(text)


def _told(victim: Victim) -> str:
    return f"worker {victim}" if victim in get_args(Point) else victim


def _message(parcel: str, number: int) -> Outgoing:
    """Return the post of a parcel, or one of the notes that follow it."""
    type, body = ("Note", {"parcel": parcel, "number": number}) if number else ("Post", {"parcel": parcel})
    id = f"{parcel}/{number}"
    headers = {"ce-specversion": "1.0", "ce-id": id, "ce-source": "/shop", "ce-type": type}
    headers["content-type"] = "application/json"
    return Outgoing(POSTS, f"/shop#{id}", json.encode(body), headers, parcel)

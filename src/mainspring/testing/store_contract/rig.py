"""What the tests of the suite stand on: a store with two workers and a clock, and short words for records."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar
from unittest import SkipTest

from msgspec.structs import replace

from mainspring.port.records import (
    NO_LEAVES,
    Claims,
    Committed,
    DeadLetter,
    EventRow,
    InputRow,
    Leaves,
    Outcome,
    OutputClaim,
    OutputKey,
    OutputRow,
    Ref,
    Unit,
)
from mainspring.port.store import Store
from mainspring.testing.clock import SECOND_US, VirtualClock

ORDERS: Final = "Orders"
CONTEXT: Final = b'{"correlation_id":"c-1"}'
WRITTEN_US: Final = 1_700_000_000_000_000
LEASE_SECONDS: Final = 30
ALL_DESTINATIONS: Final = ("Charge", "Ship", ORDERS)


class Suite:
    """What a store's test class says about the store.

    A store made twice with the same clock and path is two handles on the same data, or a store opened again after being
    closed; `durable` and `second_handle` say whether this one can do that. Its clock must be the one it is given.
    """

    durable: ClassVar[bool] = True
    second_handle: ClassVar[bool] = True

    def make_store(self, clock: VirtualClock, tmp_path: Path) -> Store:
        """Return a store that is not open yet."""
        raise NotImplementedError

    async def reopen(self, store: Store, clock: VirtualClock, tmp_path: Path) -> Store:
        """Close a store, and return one on the same data that is open."""
        await store.close()
        again = self.make_store(clock, tmp_path)
        await again.open()
        return again


@dataclass
class Rig:
    """A store at work: two live workers, and a clock that only the test moves."""

    suite: Suite
    store: Store
    clock: VirtualClock
    tmp_path: Path
    worker: int = 0
    other: int = 0

    async def commit(self, *units: Unit, by: int | None = None) -> list[Outcome]:
        return await self.store.commit(self.worker if by is None else by, units)

    async def done(self, *units: Unit, by: int | None = None) -> list[Committed]:
        """Commit units of which none may be refused."""
        outcomes = await self.commit(*units, by=by)
        committed = [outcome for outcome in outcomes if isinstance(outcome, Committed)]
        assert len(committed) == len(units), outcomes
        return committed

    async def begun(self, *outputs: OutputRow, on: str = "o-1") -> list[OutputKey]:
        """Begin an instance with these outputs, and return where they stand."""
        unit = step("m-1", *outputs, on=on)
        (committed,) = await self.done(unit)
        return [OutputKey(committed.key, output.version) for output in unit.outputs]

    async def claim(
        self,
        by: int | None = None,
        destinations: Sequence[str] = ALL_DESTINATIONS,
        workflows: Sequence[str] = (ORDERS,),
        limit: int = 1_000,
        leaves: Leaves = NO_LEAVES,
    ) -> Claims:
        return await self.store.claim(self.worker if by is None else by, destinations, workflows, limit, leaves)

    async def claimed(self, by: int | None = None) -> list[OutputKey]:
        """Claim whatever there is, and return the outputs."""
        return [claim.output for claim in (await self.claim(by)).outputs]

    async def inputs(self, by: int | None = None) -> list[str]:
        """Claim whatever there is, and return the inputs' message ids."""
        return [row.message_id for row in (await self.claim(by)).inputs]

    async def waiting(self, on: str = "o-1") -> list[str]:
        return [row.message_id for row in await self.store.inbox(Ref(ORDERS, on), 1_000)]

    async def versions(self, on: str = "o-1") -> list[int]:
        return [event.version for event in await self.store.stream(Ref(ORDERS, on), 0, 1_000)]

    async def open_outputs(self, *, timers: bool = False) -> list[OutputClaim]:
        return await self.store.outputs(None, timers, 1_000)

    async def reopen(self) -> None:
        if not self.suite.durable:
            raise SkipTest("this store forgets everything when it is closed")
        self.store = await self.suite.reopen(self.store, self.clock, self.tmp_path)

    async def second(self) -> Store:
        """Return another handle on the same data; the test closes it."""
        if not self.suite.second_handle:
            raise SkipTest("this store has one handle only")
        store = self.suite.make_store(self.clock, self.tmp_path)
        await store.open()
        return store


SuiteT = TypeVar("SuiteT", bound=Suite)


def behaviour(body: Callable[[SuiteT, Rig], Awaitable[None]]) -> Callable[[SuiteT, Path], None]:
    """Make a plain test of an async one: pytest needs no plugin, and every test gets a loop, a store and a rig.

    >>> class Sample(Suite):
    ...     @behaviour
    ...     async def test_a_sentence(self, rig: Rig) -> None: ...
    >>> Sample.test_a_sentence.__name__
    'test_a_sentence'
    """

    def test(self: SuiteT, tmp_path: Path) -> None:
        asyncio.run(_run(self, tmp_path, body))

    # functools.wraps would show pytest the async function's parameters, and it would look for a fixture `rig`.
    test.__name__, test.__qualname__, test.__doc__ = body.__name__, body.__qualname__, body.__doc__
    test.__module__ = body.__module__
    return test


async def _run(suite: SuiteT, tmp_path: Path, body: Callable[[SuiteT, Rig], Awaitable[None]]) -> None:
    clock = VirtualClock()
    rig = Rig(suite, suite.make_store(clock, tmp_path), clock, tmp_path)
    await rig.store.open()
    try:
        rig.worker = await rig.store.register_worker("first", LEASE_SECONDS * SECOND_US)
        rig.other = await rig.store.register_worker("second", LEASE_SECONDS * SECOND_US)
        await body(suite, rig)
    finally:
        await rig.store.close()


def order(id: str = "o-1") -> Ref:
    """Return the identity of an instance of the sample workflow.

    >>> str(order())
    'Orders/o-1'
    """
    return Ref(ORDERS, id)


def send(destination: str = "Charge", **fields: Any) -> OutputRow:
    """Return an output for `step`, which gives it its version.

    >>> send(priority=2).kind
    'send'
    """
    return OutputRow(0, "send", destination, **fields)


def timer(key: str = "Timeout", after_seconds: float = 60, **fields: Any) -> OutputRow:
    """Return a timer for `step`.

    >>> timer(after_seconds=1).after_us
    1000000
    """
    return OutputRow(0, "timer", ORDERS, after_us=round(after_seconds * SECOND_US), key=key, **fields)


def step(
    message: str, *outputs: OutputRow, on: str = "o-1", after: int = 0, body: bytes = b"{}", **fields: Any
) -> Unit:
    """Return a step that takes a message at the version `after` and records these outputs.

    >>> [event.event for event in step("m-1", send()).events]
    ['Began', 'InitiatedBy', 'Sent']
    """
    events = [] if after else [EventRow(1, "Began", WRITTEN_US)]
    first = "Received" if after else "InitiatedBy"
    version = after + len(events) + 1
    events.append(received(version, message, first, body=body))
    numbered = tuple(replace(output, version=version + n) for n, output in enumerate(outputs, 1))
    events += [_recorded(output) for output in numbered]
    step_fields: dict[str, Any] = {"expected_version": after, "dedupe": message, "state": "Waiting", "context": CONTEXT}
    return Unit(ORDERS, on, events=tuple(events), outputs=numbered, **(step_fields | fields))


def received(version: int, message: str, event: str = "Received", **fields: Any) -> EventRow:
    """Return the event of an input.

    >>> received(2, "m-2").message_id
    'm-2'
    """
    input_fields: dict[str, Any] = {"type": "Go", "body": b"{}", "kind": "command", "context": CONTEXT}
    return EventRow(version, event, WRITTEN_US, message_id=message, **(input_fields | fields))


def _recorded(output: OutputRow) -> EventRow:
    name = "Scheduled" if output.kind == "timer" else "Sent"
    return EventRow(output.version, name, WRITTEN_US, type=f"{output.destination}Message", body=b'{"n":1}')


def accept(*messages: str, on: str = "o-1", **fields: Any) -> Unit:
    """Return a unit that only puts messages into an inbox.

    >>> len(accept("m-1", "m-2").accepts)
    2
    """
    return Unit(ORDERS, on, accepts=tuple(input_row(message, on, **fields) for message in messages))


def input_row(message: str, on: str = "o-1", **fields: Any) -> InputRow:
    """Return an input for an inbox.

    >>> input_row("m-1").type
    'Go'
    """
    input_fields: dict[str, Any] = {
        "workflow": ORDERS,
        "kind": "command",
        "type": "Go",
        "type_version": 1,
        "body": b"{}",
        "time_us": WRITTEN_US,
        "context": CONTEXT,
    }
    return InputRow(instance=on, message_id=message, **(input_fields | fields))


def settle(*outputs: OutputKey, **fields: Any) -> Unit:
    """Return a unit that settles outputs.

    >>> settle(OutputKey(1, 3)).settles
    (OutputKey(instance=1, version=3),)
    """
    return Unit(ORDERS, "o-1", settles=outputs, **fields)


def letter(message: str = "m-9", **fields: Any) -> DeadLetter:
    """Return a dead letter.

    >>> letter().reason
    'gave up'
    """
    letter_fields: dict[str, Any] = {
        "reason": "gave up",
        "kind": "command",
        "type": "ChargeMessage",
        "type_version": 1,
        "body": b'{"n":1}',
        "time_us": WRITTEN_US,
        "context": CONTEXT,
    }
    return DeadLetter(ORDERS, "o-1", message, **(letter_fields | fields))

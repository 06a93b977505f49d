"""Those that seem stuck are found, those that do not are left alone, and the reason is what the store says."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from mainspring.analysis.figures import tally
from mainspring.analysis.figures.samples import Sample
from mainspring.analysis.stuck import awaited
from mainspring.analysis.stuck.stuck import LEAST_STAYS, Stuck, StuckFound, fence_of, stuck_of
from mainspring.port.records import (
    Committed,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceFilter,
    OutputKey,
    OutputRow,
    Retry,
    Unit,
)
from mainspring.port.store import Store
from mainspring.port.tasks import TaskOpening, TaskWork
from mainspring.stores.sqlite.store import SqliteStore
from mainspring.testing.clock import VirtualClock

SECOND_US = 1_000_000
ORDERS = "Orders"
CONTEXT = b'{"correlation_id":"c-1"}'
MINUTES = [50 + n % 21 for n in range(60)]


class Bed:
    """A store in a file, and a clock that stands where the test puts it."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.store = store
        self.clock = clock
        self.worker = 0

    async def write(self, *units: Unit) -> list[int]:
        outcomes = await self.store.commit(self.worker, units)
        assert all(isinstance(outcome, Committed) for outcome in outcomes), outcomes
        return [outcome.key for outcome in outcomes if isinstance(outcome, Committed)]

    async def stuck(self, bounds: dict[str, timedelta] | None = None, **where: Any) -> StuckFound:
        return await stuck_of(self.store, InstanceFilter(**where), bounds or {})

    def waits(self, id: str, seconds: float, *events: EventRow, **fields: Any) -> Unit:
        """Return an instance that has been in the state Waiting for so long."""
        at_us = self.clock.now_us() - round(seconds * SECOND_US)
        taken = EventRow(2, "InitiatedBy", at_us, "Place", 1, b"{}", kind="command", message_id="m", state="Waiting")
        rest = tuple(replace(event, version=3 + n, time_us=at_us) for n, event in enumerate(events))
        opening = (EventRow(1, "Began", at_us), taken, *rest)
        return Unit(ORDERS, id, expected_version=0, events=opening, state="Waiting", context=CONTEXT, **fields)

    def waited(self, id: str, seconds: float) -> Unit:
        """Return an instance that left the state Waiting after so long."""
        begun = self.waits(id, seconds)
        now_us = self.clock.now_us()
        left = EventRow(3, "Received", now_us, "Go", 1, b"{}", kind="command", message_id="m-2", state="Done")
        ended = EventRow(4, "Completed", now_us)
        return replace(begun, events=(*begun.events, left, ended), status="completed", state="Done")

    async def usual(self) -> None:
        """Let sixty instances have waited for about an hour."""
        await self.write(*(self.waited(f"done-{n}", 60 * minutes) for n, minutes in enumerate(MINUTES)))


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[Bed]:
    clock = VirtualClock()
    clock.advance(86_400 * 20_000)
    store = SqliteStore(path / "stuck.db", clock)
    await store.open()
    bed = Bed(store, clock)
    bed.worker = await store.register_worker("w", 60 * SECOND_US)
    try:
        yield bed
    finally:
        await store.close()


def on(path: Path, body: Callable[[Bed], Awaitable[None]]) -> None:
    async def run() -> None:
        async with opened(path) as bed:
            await body(bed)

    asyncio.run(run())


def test_one_that_stays_unusually_long_is_found(tmp_path: Path) -> None:
    async def body(bed: Bed) -> None:
        await bed.usual()
        await bed.write(bed.waits("slow", 86_400), bed.waits("usual", 3_900))
        found = await bed.stuck()
        (stuck,) = found.shown
        assert (stuck.instance, stuck.by, stuck.state) == ("Orders/slow", "dwell", "Waiting")
        assert (stuck.stays, found.found, found.looked_at) == (60, 1, 2)
        assert stuck.usual_seconds == pytest.approx(59 * 60)
        assert 4_200 < (stuck.limit_seconds or 0) < 10_000
        assert stuck.state_seconds == stuck.running_seconds == 86_400

    on(tmp_path, body)


def test_too_few_finished_stays_say_nothing(tmp_path: Path) -> None:
    async def body(bed: Bed) -> None:
        await bed.write(*(bed.waited(f"done-{n}", 60) for n in range(LEAST_STAYS - 1)))
        await bed.write(bed.waits("slow", 86_400))
        assert (await bed.stuck()).found == 0
        await bed.write(bed.waited("one-more", 60))
        assert (await bed.stuck()).found == 1

    on(tmp_path, body)


def test_the_workflows_own_bound_counts_from_the_beginning(tmp_path: Path) -> None:
    async def body(bed: Bed) -> None:
        await bed.write(bed.waits("old", 7_201), bed.waits("young", 7_199), bed.waited("ended", 9_999))
        found = await bed.stuck({ORDERS: timedelta(hours=2)})
        (stuck,) = found.shown
        assert (stuck.id, stuck.by, stuck.limit_seconds, stuck.usual_seconds) == ("old", "bound", 7_200, None)

    on(tmp_path, body)


def test_who_is_late_twice_is_told_once(tmp_path: Path) -> None:
    async def body(bed: Bed) -> None:
        await bed.usual()
        await bed.write(bed.waits("slow", 86_400))
        found = await bed.stuck({ORDERS: timedelta(hours=2)})
        assert [(stuck.id, stuck.by) for stuck in found.shown] == [("slow", "bound")]
        assert found.found == 1

    on(tmp_path, body)


def test_the_worst_come_first_and_all_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "LONGEST_KEPT", 3)

    async def body(bed: Bed) -> None:
        await bed.usual()
        await bed.write(*(bed.waits(f"slow-{n}", 86_400 * (1 + n)) for n in range(5)))
        found = await bed.stuck()
        assert [stuck.id for stuck in found.shown] == ["slow-4", "slow-3", "slow-2"]
        assert found.found == 5

    on(tmp_path, body)


def test_who_is_late_twice_is_counted_once_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "LONGEST_KEPT", 3)

    async def body(bed: Bed) -> None:
        await bed.usual()
        late = [bed.waits(f"late-{n}", 86_400 * (3 + n)) for n in range(5)]
        await bed.write(*late, *(bed.waits(f"slow-{n}", 43_200 + n) for n in range(2)))
        found = await bed.stuck({ORDERS: timedelta(days=1)})
        by_bound, by_dwell = ([stuck.id for stuck in found.shown if stuck.by == by] for by in ("bound", "dwell"))
        assert (by_bound, by_dwell) == (["late-4", "late-3", "late-2"], ["slow-1", "slow-0"])
        assert found.found == 7

    on(tmp_path, body)


def test_durations_alike_raise_half_an_alarm_on_average() -> None:
    """The fence is where it is said to be: of many samples of alike stays, every second has one behind it."""
    dice = random.Random(11)  # noqa: S311  no secret
    alarms = 0
    for _ in range(200):
        sample = Sample()
        values = [round(dice.lognormvariate(15, 1.2)) for _ in range(200)]
        sample.values.extend(values)
        fence = fence_of(sample, waiting=0)
        assert fence is not None
        alarms += sum(value > fence.limit_us for value in values)
    assert 0.2 < alarms / 200 < 1.5


def test_a_few_odd_ones_do_not_move_the_fence() -> None:
    calm, odd = Sample(), Sample()
    calm.values.extend([60 * SECOND_US * minutes for minutes in MINUTES])
    odd.values.extend([60 * SECOND_US * minutes for minutes in MINUTES[:-3]] + [10**13] * 3)
    first, second = fence_of(calm, 1), fence_of(odd, 1)
    assert first is not None
    assert second is not None
    assert second.limit_us == pytest.approx(first.limit_us, rel=0.1)


async def _only(bed: Bed) -> Stuck:
    (stuck,) = (await bed.stuck({ORDERS: timedelta(seconds=1)})).shown
    return stuck


def reason(path: Path, make: Callable[[Bed], Awaitable[None]], cause: str, text: str) -> None:
    """Assert why the one instance that was made does not go on."""

    async def body(bed: Bed) -> None:
        await make(bed)
        found = (await _only(bed)).reason
        assert (found.cause, found.text) == (cause, text)

    on(path, body)


SENT = EventRow(3, "Sent", 0, "Charge", 1, b"{}", cause=2)


def test_nothing_under_way_is_said_to_be_so(tmp_path: Path) -> None:
    async def make(bed: Bed) -> None:
        await bed.write(bed.waits("o", 60))

    reason(tmp_path, make, "nothing", "nothing is under way: only a message from outside can wake it")


def test_a_suspended_one_tells_its_error(tmp_path: Path) -> None:
    async def make(bed: Bed) -> None:
        await bed.write(bed.waits("o", 60, status="suspended", error="ValueError: no"))

    reason(tmp_path, make, "suspended", "suspended: ValueError: no")


def test_a_failing_handler_tells_attempts_next_try_and_error(tmp_path: Path) -> None:
    async def make(bed: Bed) -> None:
        (key,) = await bed.write(bed.waits("o", 60, SENT, outputs=(OutputRow(3, "send", "Charge", claimed=True),)))
        retry = Retry(OutputKey(key, 3), 4, 30 * SECOND_US, "the bank is closed")
        await bed.write(Unit(ORDERS, "o", retries=(retry,)))

    reason(tmp_path, make, "failing", "Charge failed 4 times, next try in 30 s: the bank is closed")


def test_a_command_without_a_result_is_told(tmp_path: Path) -> None:
    async def make(bed: Bed) -> None:
        await bed.write(bed.waits("o", 60, SENT, outputs=(OutputRow(3, "send", "Charge"),)))
        bed.clock.advance(90)

    reason(tmp_path, make, "handler", "Charge was due 1 min 30 s ago, and has no result yet")


def _letter(output: OutputKey | None = None) -> DeadLetter:
    what = (ORDERS, "o", "m-9", "command", "Charge", 1, b"{}", 0, CONTEXT)
    return DeadLetter(*what, reason="gave up", error="no", attempts=20, output=output)


def test_a_dead_letter_is_told(tmp_path: Path) -> None:
    async def make(bed: Bed) -> None:
        await bed.write(bed.waits("o", 60))
        await bed.write(Unit(ORDERS, "o", dead_letters=(_letter(),)))

    reason(tmp_path, make, "dead letter", "Charge is dead letter 1 after 20 attempts: no")


@pytest.mark.parametrize("sent", [True, False])
def test_what_came_to_an_instance_in_vain_is_told_behind_what_it_waits_for(tmp_path: Path, sent: bool) -> None:
    """What it has sent in vain is told before: it may wait for just that."""
    texts = ["Charge is dead letter 1 after 20 attempts: no", "Charge was due just now, and has no result yet"]

    async def make(bed: Bed) -> None:
        (key,) = await bed.write(bed.waits("o", 60, SENT, outputs=(OutputRow(3, "send", "Charge"),)))
        await bed.write(Unit(ORDERS, "o", dead_letters=(_letter(OutputKey(key, 2) if sent else None),)))

    cause, told = ("dead letter", texts) if sent else ("handler", texts[::-1])
    reason(tmp_path, make, cause, "; ".join(told))


def test_inputs_that_nobody_takes_are_told(tmp_path: Path) -> None:
    async def make(bed: Bed) -> None:
        await bed.write(bed.waits("o", 60))
        now_us = bed.clock.now_us()
        rows = tuple(InputRow(ORDERS, "o", f"m-{n}", "command", "Go", 1, b"{}", now_us, CONTEXT) for n in range(3, 5))
        await bed.write(Unit(ORDERS, "o", accepts=rows))
        bed.clock.advance(5)

    reason(tmp_path, make, "inbox", "Go came 5 s ago, and 1 more after it: no worker took it")


def test_a_timer_tells_when_it_fires(tmp_path: Path) -> None:
    async def make(bed: Bed) -> None:
        timer = OutputRow(3, "timer", ORDERS, after_us=300 * SECOND_US, key="Timeout")
        event = EventRow(3, "Scheduled", 0, "Timeout", 1, b"{}", b'{"key":"Timeout"}', cause=2)
        await bed.write(bed.waits("o", 60, event, outputs=(timer,)))

    reason(tmp_path, make, "timer", "the timer Timeout is due in 5 min")


def test_an_open_task_tells_whom_it_waits_for(tmp_path: Path) -> None:
    async def make(bed: Bed) -> None:
        opening = TaskOpening(3, "approval", "Approve o", ("Approve",), role="manager")
        asked = EventRow(3, "Asked", 0, detail=b'{"key":"approval"}', cause=2)
        await bed.write(bed.waits("o", 60, asked, tasks=TaskWork(opens=(opening,))))
        bed.clock.advance(7_200)

    reason(tmp_path, make, "task", "the task 'Approve o' was opened for manager 2 h ago")


def test_a_child_that_runs_is_told(tmp_path: Path) -> None:
    async def make(bed: Bed) -> None:
        await bed.write(bed.waits("o", 60, EventRow(3, "ChildStarted", 0, "Ship", 1, b"{}", cause=2)))

    reason(tmp_path, make, "child", "its child, begun by Ship 1 min ago, has not ended")


def test_a_child_far_back_or_far_on_in_a_long_stream_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaited, "EVENTS_PER_READ", 2)
    child = EventRow(0, "ChildStarted", 0, "Ship", 1, b"{}", cause=2)

    async def make(bed: Bed) -> None:
        await bed.write(bed.waits("o", 60, child, SENT, SENT, SENT, child))

    told = "its child, begun by Ship 1 min ago, has not ended"
    reason(tmp_path, make, "child", f"{told}; {told}")


def test_more_inputs_than_are_looked_at_are_not_said_to_be_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.analysis.stuck.stuck.INPUTS_LOOKED_AT", 3)

    async def make(bed: Bed) -> None:
        await bed.write(bed.waits("o", 60))
        now_us = bed.clock.now_us()
        rows = tuple(InputRow(ORDERS, "o", f"m-{n}", "command", "Go", 1, b"{}", now_us, CONTEXT) for n in range(3, 9))
        await bed.write(Unit(ORDERS, "o", accepts=rows))

    reason(tmp_path, make, "inbox", "Go came just now, and 2 or more after it: no worker took it")


def test_what_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    async def body(bed: Bed) -> None:
        await bed.write(
            bed.waits("o", 60, SENT, outputs=(OutputRow(3, "send", "Charge"),)),
            bed.waits("p", 60),
        )
        damage = apsw.Connection(str(tmp_path / "stuck.db"))
        damage.execute("UPDATE outbox SET destination = 'Nobody'")
        damage.close()
        found = (await bed.stuck({ORDERS: timedelta(seconds=1)})).shown
        assert [(stuck.id, stuck.reason.cause) for stuck in found] == [("o", "damaged"), ("p", "nothing")]

    on(tmp_path, body)


def test_a_suspended_one_is_stuck_at_once_and_comes_first(tmp_path: Path) -> None:
    async def body(bed: Bed) -> None:
        await bed.usual()
        await bed.write(
            bed.waits("long", 3600 * 24, status="running"),
            replace(bed.waits("stopped", 5), status="suspended", error="ValueError: no"),
            Unit(ORDERS, "unbegun", expected_version=0, status="suspended", error="KeyError: 'a'", context=CONTEXT),
        )
        found = await bed.stuck()
        assert [(one.id, one.by) for one in found.shown[:2]] == [("stopped", "suspended"), ("unbegun", "suspended")]
        assert [one.id for one in found.shown[2:]] == ["long"]
        assert (found.found, found.looked_at) == (3, 3)

    on(tmp_path, body)


def test_one_of_which_something_is_wrong_comes_before_a_healthy_one_that_is_later(tmp_path: Path) -> None:
    async def body(bed: Bed) -> None:
        healthy = bed.waits("healthy", 7200)
        sick = replace(bed.waits("sick", 3700), accepts=(_input("sick"),))
        await bed.write(healthy, sick)
        found = await bed.stuck({ORDERS: timedelta(hours=1)})
        assert [(one.id, one.reason.cause) for one in found.shown] == [("sick", "inbox"), ("healthy", "nothing")]

    on(tmp_path, body)


def test_a_task_that_was_opened_seconds_ago_is_not_stuck_however_quick_the_others_were(tmp_path: Path) -> None:
    async def body(bed: Bed) -> None:
        await bed.write(*(bed.waited(f"done-{n}", 0.05) for n in range(60)))
        await bed.write(bed.waits("asked", 5))
        assert (await bed.stuck()).found == 0
        bed.clock.advance(60)
        assert [one.id for one in (await bed.stuck()).shown] == ["asked"]

    on(tmp_path, body)


def _input(id: str) -> InputRow:
    return InputRow(ORDERS, id, "m-9", "command", "Go", 1, b"{}", 0, CONTEXT)

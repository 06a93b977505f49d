import asyncio
import socket
import urllib.request
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.error import HTTPError, URLError

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from mainspring.engine.handlers.policies.breaker import Breaker, BreakerState, admit, failed, succeeded, wait_us
from mainspring.errors import SettingError
from tests.support.ports import free_port
from tests.support.running import run

MINUTE = 60_000_000
POLICY = Breaker(failures=3, open_for=timedelta(minutes=1))


@dataclass
class Reference:
    """A breaker as one would write it with plain mutable fields; a call knows the period in which it was admitted."""

    name: str = "closed"
    failures: int = 0
    silent_until: int = 0
    period: object = field(default_factory=object)

    def ask(self, now: int) -> bool:
        if self.name == "closed":
            return True
        self.silent_until = min(self.silent_until, now + MINUTE)
        if now < self.silent_until:
            return False
        self.name, self.silent_until = "half open", now + MINUTE
        return True

    def report(self, period: object, now: int, *, well: bool) -> None:
        if period is not self.period:
            return
        if self.name == "half open":
            self.go("closed" if well else "open", now)
        elif well:
            self.failures = 0
        else:
            self.failures += 1
            if self.failures == POLICY.failures:
                self.go("open", now)

    def go(self, name: str, now: int) -> None:
        self.name, self.failures, self.silent_until, self.period = name, 0, now + MINUTE, object()


class BreakerMachine(RuleBasedStateMachine):
    """Calls overlap, report late or never, and the clock may be set back."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 10 * MINUTE
        self.state = BreakerState()
        self.reference = Reference()
        self.running: list[tuple[int, object]] = []
        self.probes: list[int] = []

    @rule(step=st.sampled_from([1, MINUTE // 2, MINUTE - 1, MINUTE, MINUTE + 1, 5 * MINUTE]))
    def time_passes(self, step: int) -> None:
        self.now += step

    @rule(step=st.sampled_from([1, MINUTE, 5 * MINUTE]))
    def the_clock_is_set_back(self, step: int) -> None:
        self.now -= step
        self.probes = [probe - step for probe in self.probes]

    @rule()
    def a_call_asks(self) -> None:
        closed, waits = self.state.phase == "closed", wait_us(POLICY, self.state, self.now)
        passes, self.state = admit(POLICY, self.state, self.now)

        assert passes == self.reference.ask(self.now)
        assert passes == (waits == 0)
        if passes:
            self.running.append((self.state.flips, self.reference.period))
            self.probes = [] if closed else [*self.probes, self.now]

    @precondition(lambda self: bool(self.running))
    @rule(data=st.data(), well=st.booleans())
    def a_call_reports(self, data: st.DataObject, well: bool) -> None:
        flips, period = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.report(flips, period, well)

    @precondition(lambda self: bool(self.running))
    @rule(well=st.booleans())
    def the_latest_call_reports(self, well: bool) -> None:
        self.report(*self.running.pop(), well)

    @precondition(lambda self: len(self.running) >= POLICY.failures)
    @rule()
    def the_destination_breaks(self) -> None:
        while self.running:
            self.report(*self.running.pop(), False)

    def report(self, flips: int, period: object, well: bool) -> None:
        self.state = succeeded(self.state, flips) if well else failed(POLICY, self.state, self.now, flips)
        self.reference.report(period, self.now, well=well)

    @invariant()
    def it_is_where_the_reference_is(self) -> None:
        assert self.state.phase == self.reference.name

    @invariant()
    def an_open_breaker_lets_nothing_through_but_one_probe(self) -> None:
        pairs = zip(self.probes, self.probes[1:], strict=False)
        assert all(later - earlier >= MINUTE for earlier, later in pairs)

    @invariant()
    def nobody_waits_longer_than_open_for(self) -> None:
        assert 0 <= wait_us(POLICY, self.state, self.now) <= MINUTE


def test_it_does_what_the_reference_does() -> None:
    # More where others are tried each time, in the soak.
    most = 40 if settings().derandomize else 400
    run_state_machine_as_test(
        BreakerMachine, settings=settings(max_examples=most, stateful_step_count=40, deadline=None)
    )


def opened(at_us: int = 0) -> BreakerState:
    state = BreakerState()
    for _ in range(POLICY.failures):
        state = failed(POLICY, state, at_us)
    return state


def probing(at_us: int = MINUTE) -> BreakerState:
    passes, state = admit(POLICY, opened(), at_us)
    assert passes
    return state


def test_it_opens_at_the_threshold_and_not_before() -> None:
    assert failed(POLICY, BreakerState(failures=1), 0).phase == "closed"
    assert failed(POLICY, BreakerState(failures=2), 0).phase == "open"


def test_a_success_makes_the_count_begin_anew() -> None:
    state = succeeded(failed(POLICY, failed(POLICY, BreakerState(), 0), 0))

    assert failed(POLICY, failed(POLICY, state, 0), 0).phase == "closed"


def test_one_failed_probe_reopens_at_once_for_the_full_time() -> None:
    state = failed(POLICY, probing(), MINUTE + 5)

    assert state.phase == "open"
    assert wait_us(POLICY, state, MINUTE + 5) == MINUTE


def test_a_successful_probe_closes_and_forgets_every_failure() -> None:
    state = succeeded(probing())

    assert state.phase == "closed"
    assert state.failures == 0


def test_a_lost_probe_is_followed_by_another_and_not_sooner_than_open_for() -> None:
    state = probing(MINUTE)

    assert not admit(POLICY, state, 2 * MINUTE - 1)[0]
    assert admit(POLICY, state, 2 * MINUTE)[0]


def test_a_probe_slower_than_open_for_still_closes_the_breaker() -> None:
    first = probing(MINUTE)
    _, state = admit(POLICY, first, 2 * MINUTE)

    assert succeeded(state, first.flips).phase == "closed"


@pytest.mark.parametrize("state", [opened(), probing()], ids=lambda state: state.phase)
def test_a_late_result_from_before_the_opening_changes_nothing(state: BreakerState) -> None:
    before = BreakerState().flips

    assert succeeded(state, before) == state
    assert failed(POLICY, state, MINUTE, before) == state


def test_while_no_probe_runs_a_result_without_an_era_changes_nothing_either() -> None:
    assert succeeded(opened()) == opened()
    assert failed(POLICY, opened(), 5) == opened()


def test_a_failure_from_before_the_closing_does_not_count_afterwards() -> None:
    closed = succeeded(probing())

    assert failed(POLICY, closed, MINUTE, BreakerState().flips) == closed


def test_of_two_probes_the_first_to_report_decides_and_the_other_is_late() -> None:
    _, state = admit(POLICY, probing(MINUTE), 2 * MINUTE)
    closed = succeeded(state, state.flips)

    assert failed(POLICY, closed, 2 * MINUTE, state.flips) == closed


def test_without_a_policy_everything_passes_and_nothing_is_counted() -> None:
    assert admit(None, opened(), 0) == (True, opened())
    assert wait_us(None, opened(), 0) == 0
    assert failed(None, BreakerState(), 0) == BreakerState()


def test_a_clock_set_back_by_a_day_holds_nobody_up_for_a_day() -> None:
    day = 24 * 60 * MINUTE
    passes, state = admit(POLICY, opened(day), 0)

    assert not passes
    assert admit(POLICY, state, MINUTE)[0]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("failures", 0), ("failures", "5"), ("open_for", timedelta(0)), ("open_for", 60), ("open_for", timedelta(999))],
)
def test_a_setting_without_sense_is_refused_by_name(setting: str, value: Any) -> None:
    with pytest.raises(SettingError, match=rf"^Breaker\.{setting} is .*\. Use "):
        Breaker(**{setting: value})


def test_a_host_all_of_whose_addresses_refuse_counts() -> None:
    """Asyncio raises one error for all of them then, without a number and without a cause."""

    async def main() -> None:
        loop, port = asyncio.get_running_loop(), free_port()

        async def two_addresses(*_: object, **__: object) -> list[Any]:
            tcp = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
            return [(*tcp, (address, port)) for address in ("127.0.0.1", "127.0.0.2")]

        loop.getaddrinfo = two_addresses
        with pytest.raises(OSError, match=r"^Multiple exceptions: ") as raised:
            await asyncio.open_connection("bank.example", port)
        assert (raised.value.errno, raised.value.__cause__) == (None, None)
        assert Breaker().counts(raised.value)

    run(main)


@pytest.mark.parametrize("text", ["[Errno 98] error while attempting to bind", "a card is stolen", ""])
def test_several_errors_that_say_nothing_of_the_destination_do_not_count(text: str) -> None:
    assert not Breaker().counts(OSError(f"Multiple exceptions: {text}, {text}"))
    assert not Breaker().counts(OSError("[Errno 111] so says a file that is not a socket"))


def test_an_error_of_urllib_counts_by_its_reason() -> None:
    with pytest.raises(URLError) as raised:
        urllib.request.urlopen(f"http://127.0.0.1:{free_port()}/", timeout=10)
    assert Breaker().counts(raised.value)
    assert not Breaker().counts(HTTPError("http://bank", 402, "declined", None, None))  # pyright: ignore[reportArgumentType]

"""The circuit breaker of one destination: it rests after repeated failures; calls wait, which costs no attempt.

    closed      every call passes; failures in a row are counted    the count is full → open
    open        nothing passes                                      open_for is over → the next call is the probe
    half open   nothing passes but that one probe                   it succeeds → closed; it fails → open, at once

It judges the destination, and never a message: only what `Breaker.counts` is a failure here. Any other error says
nothing of the destination: it is not counted, and if it was the probe's, another call is the probe at once.

A probe that never reports (its call hangs, its worker lost it) is given up after another open_for: then a new one may
pass.

Late results are ignored: what was admitted before the latest opening or closing says nothing about the destination now.
An old success must not close a breaker before its probe reports, nor an old failure open one that has just closed. So a
call keeps the `flips` of the state that admitted it, and reports with them. All probes of one opening have the same;
the first to report decides: a destination slower than open_for still closes its breaker.
"""

from __future__ import annotations

import errno
import re
from datetime import timedelta
from socket import gaierror, herror
from typing import Any, Final, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from mainspring.engine.handlers.policies.checks import check_count, check_duration, check_errors, microseconds
from mainspring.errors import BrokerError, CallError, SettingError, StoreError

# The destination was not there, or did not answer in time.
AWAY: Final = (TimeoutError, ConnectionError, gaierror, herror, BrokerError, CallError)
UNREACHABLE: Final = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})
UNCONNECTED: Final = UNREACHABLE | {errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.ETIMEDOUT}
CAUSES: Final = 100
"""How many causes and members of an error are looked at."""
ERRNO: Final = re.compile(r"\[Errno (\d+)\]")
LONG_AGO_US: Final = -(1 << 62)


class Breaker(Struct, frozen=True):
    """When calls to a destination are held back: after so many failures in a row, for so long. None is no breaker.

    What counts is that the destination does not answer: timeouts, connections that fail, and errors of the types in
    `on`. With `fail_fast` a command is given up at once while it is open, instead of waiting: its workflow gets
    `SendFailed`.

    >>> Breaker(failures=3).open_for
    datetime.timedelta(seconds=60)
    """

    failures: int = 5
    open_for: timedelta = timedelta(seconds=60)
    on: tuple[type[Exception], ...] = ()
    fail_fast: bool = False

    def __post_init__(self) -> None:
        check_count("Breaker.failures", self.failures)
        check_duration("Breaker.open_for", self.open_for, timedelta(microseconds=1))
        check_errors("Breaker.on", self.on)
        if not isinstance(self.fail_fast, bool):
            raise SettingError("Breaker.fail_fast", self.fail_fast, "Use True or False.")

    def counts(self, error: BaseException) -> bool:
        """Return True if an error says something of the destination, and not of the message.

        A client library's own error counts by what it was raised from: a refused connection is one however wrapped.

        >>> Breaker().counts(ConnectionRefusedError()), Breaker().counts(ValueError("this card is stolen"))
        (True, False)
        """
        waiting: list[BaseException] = [error]
        for _ in range(CAUSES):
            if not waiting:
                break
            seen = waiting.pop()
            if isinstance(seen, StoreError):
                return False  # the database is not the destination
            if isinstance(seen, BrokerError | CallError) and seen.of_message and not isinstance(seen, self.on):
                return False  # the destination answered, and rejected this message
            if isinstance(seen, (*AWAY, *self.on)) or (isinstance(seen, OSError) and _is_unreachable(seen)):
                return True
            if isinstance(seen, BaseExceptionGroup):
                waiting += cast("BaseExceptionGroup[BaseException]", seen).exceptions
            # urllib's URLError has what went wrong as its reason, and is not raised from it.
            behind = (seen.__cause__, getattr(cast("Any", seen), "reason", None))
            waiting += [each for each in behind if isinstance(each, BaseException)]
        return False


class BreakerState(Struct, frozen=True):
    """Where one destination's breaker stands. A new one is closed.

    `failures` counts those in a row, `flips` all openings and closings; `since_us` is None while closed, else the
    moment of the opening or of the latest probe.

    >>> BreakerState().phase
    'closed'
    """

    failures: int = 0
    flips: int = 0
    since_us: int | None = None
    probing: bool = False

    @property
    def phase(self) -> Literal["closed", "open", "half open"]:
        """The state's name, for people."""
        if self.since_us is None:
            return "closed"
        return "half open" if self.probing else "open"


def admit(policy: Breaker | None, state: BreakerState, now_us: int) -> tuple[bool, BreakerState]:
    """Return True if a call may pass now. One that passes keeps the new state's `flips` for its report.

    >>> minute = 60_000_000
    >>> opened = failed(Breaker(failures=1), BreakerState(), now_us=0)
    >>> admit(Breaker(), opened, now_us=minute - 1)[0]
    False
    >>> passes, state = admit(Breaker(), opened, now_us=minute)
    >>> passes, state.phase, admit(Breaker(), state, now_us=minute)[0]
    (True, 'half open', False)
    """
    if policy is None or state.since_us is None:
        return True, state
    if wait_us(policy, state, now_us) == 0:
        return True, replace(state, since_us=now_us, probing=True)
    # After the clock was set back, the wait begins anew at the earlier moment: never longer than open_for.
    return False, replace(state, since_us=min(state.since_us, now_us))


def succeeded(state: BreakerState, flips: int | None = None) -> BreakerState:
    """Note that a call succeeded that was admitted after so many flips; without them, just now.

    >>> succeeded(BreakerState(failures=4))
    BreakerState(failures=0, flips=0, since_us=None, probing=False)
    """
    if not _counts(state, flips):
        return state
    return BreakerState(flips=state.flips if state.since_us is None else state.flips + 1)


def failed(policy: Breaker | None, state: BreakerState, now_us: int, flips: int | None = None) -> BreakerState:
    """Note that a call failed that was admitted after so many flips; without them, just now.

    >>> failed(Breaker(failures=2), BreakerState(), now_us=0).phase
    'closed'
    >>> failed(Breaker(failures=2), BreakerState(failures=1), now_us=0).phase
    'open'
    """
    if policy is None or not _counts(state, flips):
        return state
    failures = state.failures + 1
    if state.probing or failures >= policy.failures:
        return BreakerState(failures, flips=state.flips + 1, since_us=now_us)
    return replace(state, failures=failures)


def undecided(state: BreakerState, flips: int | None = None) -> BreakerState:
    """Note that a call admitted after so many flips ended with what says nothing of the destination.

    >>> _, probing = admit(Breaker(), failed(Breaker(failures=1), BreakerState(), now_us=0), now_us=60_000_000)
    >>> admit(Breaker(), undecided(probing), now_us=60_000_000)[0]
    True
    """
    if state.probing and _counts(state, flips):
        return replace(state, since_us=LONG_AGO_US, probing=False)
    return state


def wait_us(policy: Breaker | None, state: BreakerState, now_us: int) -> int:
    """Return how long from now until a call may pass, if no result comes in between; 0 if one may pass now.

    >>> wait_us(Breaker(), failed(Breaker(failures=1), BreakerState(), now_us=0), now_us=20_000_000)
    40000000
    """
    if policy is None or state.since_us is None:
        return 0
    return max(0, min(state.since_us, now_us) + microseconds(policy.open_for) - now_us)


def _is_unreachable(error: OSError) -> bool:
    if error.errno is not None:
        return error.errno in UNREACHABLE
    # Where a host has several addresses, and all fail, asyncio raises one error with the texts of all, and no cause.
    text = str(error)
    return text.startswith("Multiple exceptions: ") and not UNCONNECTED.isdisjoint(map(int, ERRNO.findall(text)))


def _counts(state: BreakerState, flips: int | None) -> bool:
    awaited = state.since_us is None or state.probing
    return awaited and (flips is None or flips == state.flips)

"""The gate before a handler: its breaker and its rate limit, which hold calls back and cost no attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mainspring.engine.handlers.handler import Handler
from mainspring.engine.handlers.policies import breaker, limits
from mainspring.errors import BreakerOpenError, told
from mainspring.errors.kinds import kind_of
from mainspring.logs import Quoted, discretion, logger

REASON_CHARACTERS: Final = 200

log = logger("mainspring.engine")


class Gate:
    """What a handler's policies let through, in this worker."""

    def __init__(self, handler: Handler, now_us: Callable[[], int], on_change: Callable[[], None]) -> None:
        self._name = handler.name
        self._breaker, self._rate, self._retry = handler.options.breaker, handler.options.rate, handler.options.retry
        self._now_us = now_us
        self._bucket = limits.BucketState()
        self.state = breaker.BreakerState()
        self.clear = self._rate is None
        """Whether there is nothing to ask and nothing to forget, as mostly: then no call is needed."""
        self.refuses = False
        """Whether it was the breaker that let the last one wait, and not the rate."""
        self.reason = self.error = ""
        """Why the breaker is open: the latest failure that counted, and its type alone."""
        self.opened_us = 0
        """Since when it is, whatever probes have failed since."""
        # Called when the breaker has opened or closed, or a probe has failed.
        self._on_change = on_change

    @property
    def is_open(self) -> bool:
        """Whether the breaker lets nothing through but a probe."""
        return self.state.since_us is not None

    @property
    def probe_us(self) -> int:
        """When the next call may be tried, while the breaker is open."""
        now_us = self._now_us()
        return now_us + breaker.wait_us(self._breaker, self.state, now_us)

    def wait_us(self) -> int:
        """Return how long the next call has to wait. 0: it may be made, and counts as made."""
        now_us, self.refuses = self._now_us(), False
        passes, admitted = breaker.admit(self._breaker, self.state, now_us)
        if not passes:
            self._become(admitted)
            self.refuses = True
            return breaker.wait_us(self._breaker, self.state, now_us)
        if self._rate is not None:
            passes, self._bucket = limits.take(self._rate, self._bucket, now_us)
            if not passes:
                # The breaker is not notified: no call is made that could be its probe.
                return limits.wait_us(self._rate, self._bucket, now_us)
        self._become(admitted)
        return 0

    def _become(self, state: breaker.BreakerState) -> None:
        self.state = state
        self.clear = self._rate is None and state.since_us is None and not state.failures

    @property
    def fails_fast(self) -> bool:
        """Whether commands are to be given up now, instead of waiting for the breaker."""
        return self._breaker is not None and self._breaker.fail_fast and self.refuses

    def refusal(self, attempts: int) -> BreakerOpenError:
        """Return the error of a command that is not to wait. If never tried, it has certainly done nothing."""
        return BreakerOpenError(self._name, self.reason, definite=attempts == 0)

    def succeeded(self, flips: int) -> bool:
        """Note that a call succeeded. True: the breaker has just closed."""
        was_open = self.is_open
        self._become(breaker.succeeded(self.state, flips))
        if not was_open or self.is_open:
            return False
        log.warning("%s: its breaker is closed, the destination answers again", self._name)
        self.reason = self.error = ""
        self._on_change()
        return True

    def ended(self, flips: int) -> bool:
        """Note that a call ended without a verdict, or was never made. True: another may be the probe at once."""
        was_probing = self.state.probing
        self._become(breaker.undecided(self.state, flips))
        return was_probing and not self.state.probing

    def failed(self, error: Exception, flips: int) -> bool:
        """Note that a call failed. True: it was no verdict, and another call may be the probe at once."""
        if self._breaker is None:
            return False
        # What is useless to retry is the message's own fault, whatever it was raised from.
        if not self._breaker.counts(error) or not self._retry.wants_another(error, 0):
            return self.ended(flips)
        before = self.state
        self._become(breaker.failed(self._breaker, self.state, self._now_us(), flips))
        if self.state.flips != before.flips:
            # Every instance whose commands fail fast gets it: none must keep what another one is to forget.
            self.reason = kind_of(error) if discretion.asked else told(error, REASON_CHARACTERS)
            self.error = type(error).__name__
            if before.since_us is None:
                self.opened_us = self._now_us()
            log.warning(
                "%s %s (%s): its breaker is open; what is sent there %s until a call goes well; one is tried in %s",
                self._name,
                f"failed {self.state.failures} times in a row" if before.since_us is None else "still does not answer",
                Quoted(self.reason),
                "fails" if self._breaker.fail_fast else "waits",
                self._breaker.open_for,
            )
            self._on_change()
        return False

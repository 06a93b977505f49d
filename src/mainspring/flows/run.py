"""One run of a flow's code on its journal: what is recorded is given back, and what is asked beyond it is decided.

A step is an input and what was decided about it. In each, the input is delivered, the code runs until it can go no
further, and what it asked for is compared with what is recorded. What it asks for in the last one is new.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context
from datetime import datetime
from typing import Any, Final, cast

from mainspring.core.decisions import Become, CancelSchedule, Compensate, Complete, Decision, Fail
from mainspring.core.events import Became, InitiatedBy, Received
from mainspring.errors import DriftError, FlowError, shown
from mainspring.flows.asked import Asked, At, is_asked, matches
from mainspring.flows.code import Code
from mainspring.flows.comparison import Comparison
from mainspring.flows.ends import Again, Failure, StepFailed, Undo, is_declared, reason_of
from mainspring.flows.journal import Entry
from mainspring.flows.loop import FlowLoop, FlowTask
from mainspring.flows.mail import Mail
from mainspring.flows.messages import Entered, TimerDue
from mainspring.flows.timers import Timers

_NOT_OURS: Final = ("attached to a different loop", "Task got bad yield", "yield was used instead of yield from")

AGAINS_MOST: Final = 100
"""Within one step."""
_left: Final[list[Any]] = []

TEARDOWNS: Final = 10
"""How often a coroutine is closed that awaits again each time."""


class FlowRandom(random.Random):
    """What `rng()` gives: seeded with what is recorded, which the purity guard knows it by."""


_INPUTS: Final[frozenset[type[Any]]] = frozenset({Received, InitiatedBy})


class Run:
    """A flow's code, running or waiting."""

    def __init__(self, flow: Code, stage: str | None = None, mail: Mail | None = None) -> None:
        self.flow = flow
        self.stage = stage
        self.mail = mail or Mail()
        self.loop = FlowLoop(self, self._schedule, self._cancel)
        self.time: datetime | None = None
        self.following: tuple[Any, Run] | None = None
        """The run that goes on where this one has begun again, and the state that says so."""
        self.following_run: Run | None = None
        self._times = 0
        """How often the instance had begun again when this began: at the same moment its random numbers are others."""
        self.agains = 0
        """How often it has begun again in this step."""
        self.step: list[Asked] = []
        """What was asked for since the last input."""
        self._comparison = Comparison(adopt=flow.drift == "adopt")
        self._timers = Timers(self.count)
        self._counts: Counter[str] = Counter()
        self._unawaited: dict[int, Any] = {}
        self._main: asyncio.Task[Any] | None = None
        self._began: datetime | None = None
        self._random: random.Random | None = None
        self._seed = ""
        self._last: Entry | None = None

    # ---- driving it

    def replay(self, entries: Sequence[Entry]) -> None:
        """Go through a journal from its beginning."""
        if entries:
            with self.loop.current():
                self._replay(entries)

    def _replay(self, entries: Sequence[Entry]) -> None:
        self._comparison.ahead = entries
        outputs: list[Entry] = []
        for place, entry in enumerate(entries):
            if _is_input(entry):
                if self._main is not None:
                    self._settle(outputs)
                    outputs = []
                    if self._main.done():
                        raise self._drift([*self._comparison.unasked, *entries[place:]], [])
                self._take(entry)
            elif type(entry.event) is Became:
                self._start(_state_of(entry).argument, entry)
            elif is_asked(entry):
                outputs.append(entry)
        self._settle(outputs)
        self._comparison.ahead = ()

    def catch_up(self, entries: Sequence[Entry]) -> bool:
        """Take note of how the last step was recorded; return False if that is not the step that this run has taken."""
        last = self._last
        if last is None or not _is_same(entries, last):
            return False
        outputs = [entry for entry in entries if is_asked(entry)]
        asked = [each for each in self.step if each.recorded]
        if len(outputs) != len(asked) or not all(map(matches, asked, outputs)):
            return False
        if self._comparison.unasked:
            with self.loop.current():
                self._settle(outputs)
        else:
            self._settle(outputs)
        return True

    def decide(self, entry: Entry) -> list[Decision[Any, Any]]:
        """Take an input that is not recorded yet, and return what is decided about it."""
        with self.loop.current():
            return self._decide(entry)

    def _decide(self, entry: Entry) -> list[Decision[Any, Any]]:
        before = self.stage
        self._take(entry)
        comparison = self._comparison
        if comparison.unasked:
            self._claim_recorded()
            if comparison.drifts:
                raise self._drift(comparison.unasked, [])
        if comparison.new:
            self.step[:0], comparison.new = comparison.new, []
        decisions: list[Decision[Any, Any]] = [each.decision for each in self.step]
        if self.stage != before and self.stage is not None:
            decisions.insert(0, Become(Entered(self.stage)))
        if self.ended:
            if self.loop.refused is not None:
                raise self.loop.refused
            return [*decisions, *self._end()]
        self.check_waits()
        return decisions

    def check_waits(self) -> None:
        """Refuse to wait for what can never come."""
        if self.loop.refused is not None:
            raise self.loop.refused
        if not self.waits:
            raise FlowError(
                f"{self.flow.name} waits at {self.where()} for something that nothing recorded can bring about",
                "Await a step, receive(…), ask(…), asyncio.sleep or a task that awaits one of these.",
            )

    def close(self) -> None:
        """Tear the code down: its `finally` blocks run, and whatever they ask for is refused."""
        self.loop.closing = True
        if self.following_run is not None and (self.following is None or self.following_run.ended):
            self.following_run.close()
        pending = self.loop.pending()
        if pending or self._unawaited:
            with self.loop.current():
                resisting = [task.get_name() for task in pending if not _is_closed(task)]
                for forgotten in self._unawaited.values():
                    forgotten.close()
            self._unawaited.clear()
            if resisting:
                self.flow.note_resisting(resisting)
        self.loop.let_go()

    # ---- what the code asks for

    def ask(
        self,
        decision: Decision[Any, Any],
        at: At | None,
        answer: Callable[[Any], Any] | None,
        types: tuple[type[Any], ...] = (),
    ) -> Any:
        """Ask for a decision; with `answer`, return the future of what comes back, one of `types` if some are given."""
        if self.loop.closing:
            self.loop.evict()
            return None if answer is None else self.loop.create_future()
        self.flow.check_asked(decision)
        future = None if answer is None else self.loop.create_future()
        self.step.append(Asked(decision, at, future, answer, types=types))
        return future

    def ask_unrecorded(self, decision: Decision[Any, Any]) -> None:
        """Ask for what is compared with nothing: it follows from something else, and does no harm twice."""
        if self.loop.closing:
            self.loop.evict()
        self.step.append(Asked(decision, None, None, None, recorded=False))

    def receive(self, types: tuple[type[Any], ...]) -> Awaitable[Any]:
        """Return the future of the next message of one of these types."""
        future = self.loop.create_future()
        if not self.loop.closing:
            self.mail.wait(types, future)
        return future

    def count(self, name: str) -> int:
        """Return how often this was asked for by now."""
        self._counts[name] += 1
        return self._counts[name]

    def random(self) -> random.Random:
        """Return what is random in this run, the same at every re-run."""
        if self._random is None:
            self._random = FlowRandom(f"{self.flow.name}/{self._began}/{self._seed}")
        return self._random

    def created(self, call: Any) -> None:
        """Note a call that has to be awaited."""
        self._unawaited[id(call)] = call

    def used(self, call: Any) -> None:
        """Note that a call is awaited, or is another one's compensation."""
        self._unawaited.pop(id(call), None)

    # ---- what it does

    @property
    def ended(self) -> bool:
        """Whether the function has returned or raised."""
        return self._main is not None and self._main.done()

    @property
    def tasks(self) -> list[FlowTask]:
        """The tasks that wait, the flow's own first."""
        return self.loop.pending()

    @property
    def drift(self) -> DriftError | None:
        """What is recorded and not asked for where it waits now."""
        comparison = self._comparison
        return self._drift(comparison.unasked, []) if comparison.drifts else None

    @property
    def waits(self) -> bool:
        """Whether anything recorded can let it go on."""
        asked = (*self._comparison.open.values(), *self.step)
        return bool(self._timers) or self.mail.is_awaited or any(each.waits for each in asked)

    @property
    def began(self) -> datetime | None:
        """When the code began, which is 0 on its loop's clock; None before."""
        return self._began

    def asked(self) -> list[tuple[int, Asked]]:
        """Return what was asked for and has no answer, with its positions; 0 for what is not recorded."""
        new = [(0, each) for each in (*self._comparison.new, *self.step)]
        return [*self._comparison.open.items(), *new]

    def timers(self) -> list[tuple[str, asyncio.TimerHandle]]:
        """Return the timers that run, with their keys."""
        return self._timers.running()

    def where(self) -> str:
        """Return the line at which the flow's own task waits."""
        return self.flow.line_of(self._main)

    # ---- one step

    def _start(self, argument: Any, entry: Entry) -> None:
        self._began = self.time = entry.time
        self._last = entry
        self._seed = self.flow.seed_of(argument)
        if type(entry.event) is Became:
            self._times = _state_of(entry).times
            self._seed += f"#{self._times}"
        self._main = self.loop.create_task(self.flow.function(argument), name=self.flow.name, context=Context())
        self.loop.run_ready()

    def _take(self, entry: Entry) -> None:
        message = entry.event.message
        if self._main is None:
            if type(entry.event) is InitiatedBy:
                self._start(message, entry)
            else:
                self.mail.come(self.flow.name or "", message, entry.position)  # it came before this began again
            return
        self._last, self.time = entry, entry.time
        if self._began is not None and (now := (entry.time - self._began).total_seconds()) > self.loop.now:
            self.loop.now = now
        self._deliver(message, entry)
        self.loop.run_ready()

    def _deliver(self, message: Any, entry: Entry) -> None:
        if type(message) is TimerDue:
            handle = self._timers.due(message.key)
            if handle is not None:
                self.loop.now = max(self.loop.now, handle.when())
                self.loop.make_ready(handle)
            return
        is_answer = type(message) in self.flow.answer_types
        if entry.cause is not None:
            asked = self._comparison.answered(entry.cause, message)
        else:
            asked = self._oldest(message, sought=is_answer)
            if asked is not None and (closes := asked.closes) is not None:
                self.ask_unrecorded(closes)  # it came past the task, which waits no more
        if asked is not None:
            asked.give(message)
        elif not is_answer and (entry.cause is None or type(message) in self.flow.receives):
            self.mail.come(self.flow.name or "", message, entry.position)

    def _oldest(self, message: Any, *, sought: bool) -> Asked | None:
        """Return the oldest that a message can answer: only in tests it does not say what it answers."""
        for position, asked in self._comparison.open.items():
            can = self.flow.can_answer(message, asked.decision) if sought else isinstance(message, asked.types)
            if asked.waits and can:
                return self._comparison.open.pop(position)
        return None

    def _schedule(self, handle: asyncio.TimerHandle) -> None:
        asked = self._timers.set(handle, handle.when() - self.loop.now)
        if asked is None:
            self.loop.make_ready(handle)
        else:
            self.step.append(asked)

    def _cancel(self, handle: asyncio.TimerHandle) -> None:
        key = self._timers.cancelled(handle)
        if key is None:
            return
        kept = [each for each in self.step if not each.sets_timer(key)]
        if len(kept) < len(self.step):
            self.step = kept  # set and cancelled in one step: nothing of it need be recorded
        else:
            self.ask_unrecorded(CancelSchedule(key))

    # ---- beside what is recorded

    def _settle(self, outputs: list[Entry]) -> None:
        asked, self.step = [each for each in self.step if each.recorded], []
        last = outputs[-1] if outputs else self._last
        missing = self._comparison.settle(asked, outputs, 0 if last is None else last.position)
        if missing and not self._comparison.adopted(missing):
            raise self._drift(self._comparison.unasked, missing)
        if self._comparison.ahead and self.loop.is_ready:
            self.loop.run_ready()  # an answer was there before the question

    def _claim_recorded(self) -> None:
        """Take what this step asks for for what was recorded long ago, as long as more comes of that."""
        claimed = True
        while claimed:
            claimed = False
            for each in [each for each in self.step if each.recorded]:
                if self._comparison.claim(each):
                    self.step.remove(each)
                    claimed = True
            self.loop.run_ready()

    def _drift(self, recorded: Iterable[Entry], asked: Iterable[Asked]) -> DriftError:
        return DriftError(
            self.flow.name or "",
            [(entry.position, _shown(entry.event)) for entry in recorded if is_asked(entry) or _is_input(entry)],
            [(_shown(each.decision), str(each.place or self.where())) for each in asked],
        )

    # ---- the end

    def _end(self) -> list[Decision[Any, Any]]:
        main: Any = self._main
        error: BaseException | None = asyncio.CancelledError() if main.cancelled() else main.exception()
        if error is None:
            self._check_all_used()
            return [Complete(self.flow.completed(main.result()))]
        if isinstance(error, Again):
            return self._again(error.argument)
        failed = _failed(error)
        if isinstance(failed, Failure):
            return [Fail(reason_of(failed))]
        if failed is not None:
            return [Compensate(reason_of(failed))]
        self._check_awaited(error)
        if isinstance(error, asyncio.CancelledError):
            raise FlowError(
                f"{self.flow.name} ended by a CancelledError of its own", "Catch it where the task is awaited."
            ) from error
        raise error

    def _check_awaited(self, error: BaseException) -> None:
        """Say what to do where asyncio says only what it has found."""
        if isinstance(error, BaseExceptionGroup) and _has_again(error):
            raise FlowError(
                f"{self.flow.name} called again(…) in a task of its own", "Let the flow's own function call it."
            ) from error
        if isinstance(error, RuntimeError) and any(sign in str(error) for sign in _NOT_OURS):
            raise FlowError(
                f"{self.flow.name} awaited something that nothing recorded can bring about: {error}",
                "Await a step, receive(…), ask(…) or what asyncio makes of them. What reaches outside is a step.",
            ) from error

    def _check_all_used(self) -> None:
        forgotten = next(iter(self._unawaited.values()), None)
        if forgotten is not None:
            raise FlowError(
                f"{self.flow.name} has ended, and {forgotten.name}(…) at {forgotten.place} was never awaited",
                "Write `await` before it, or leave it out.",
            )
        for task in self.loop.ended_badly():
            error = task.exception()
            if error is not None:
                raise error

    def _again(self, argument: Any) -> list[Decision[Any, Any]]:
        """Begin with another argument, in the same step."""
        self._check_all_used()
        name, takes, time = self.flow.name or "", self.flow.takes, self.time
        if type(argument) is not takes or time is None:
            raise FlowError(f"{name} began again with {shown(argument, 200)}", f"Give again(…) a {takes.__name__}.")
        unread = tuple(self.mail.unread)
        state = self.flow.again_type(argument, tuple(position for _, position in unread), self._times + 1)
        following = self.following_run = Run(self.flow, self.stage, Mail(unread))
        with following.loop.current():
            following._start(argument, Entry(Became(state), time, 0))
        rest: list[Decision[Any, Any]] = []
        if following.ended:
            following.agains = self.agains + 1
            if following.agains > AGAINS_MOST:
                raise FlowError(
                    f"{name} has begun again {AGAINS_MOST} times without waiting for anything",
                    "Return where there is nothing left to do, or await something before again(…).",
                )
            rest = following._end()
            self.following = following.following
        else:
            following.check_waits()
            self.following = (state, following)
        # Left open, they would go off for what comes after, under the same keys.
        closed = [*self._timers.cancels(), *self._comparison.closes(), *(each.closes for each in self.step)]
        stage = [] if following.stage in (None, self.stage) else [Become(Entered(following.stage or ""))]
        asked = [each.decision for each in following.step]
        return [*(each for each in closed if each is not None), *stage, Become(state), *asked, *rest]


def _state_of(entry: Entry) -> Any:
    event: Any = entry.event
    return event.state


def _is_input(entry: Entry) -> bool:
    return type(entry.event) in _INPUTS


def _is_same(entries: Sequence[Entry], last: Entry) -> bool:
    """Return True if the step that was recorded is the one that a run has taken."""
    inputs = [entry for entry in entries if _is_input(entry)]
    if type(last.event) is Became:
        return not inputs
    if len(inputs) != 1:
        return False
    taken = inputs[0]
    return taken.event.message is last.event.message and (taken.time, taken.cause) == (last.time, last.cause)


def _shown(thing: Any) -> str:
    return shown(getattr(thing, "message", thing), 200)


def _failed(error: BaseException) -> BaseException | None:
    """Return what a flow failed with that it did not catch; of a group the first, if all of them are such."""
    if isinstance(error, BaseExceptionGroup):
        leaves = [_failed(each) for each in cast("BaseExceptionGroup[BaseException]", error).exceptions]
        return None if None in leaves else leaves[0]
    return error if isinstance(error, StepFailed | Failure | Undo) or is_declared(error) else None


def _has_again(error: Any) -> bool:
    return error.subgroup(Again) is not None


def _is_closed(task: Any) -> bool:
    """Close a task's coroutine; return False if it awaits again however often it is closed."""
    task._log_destroy_pending = False  # noqa: SLF001  it is destroyed on purpose
    coroutine = task.get_coro()
    for _ in range(TEARDOWNS):
        try:
            coroutine.close()
        except RuntimeError as error:
            if "ignored GeneratorExit" in str(error):
                continue  # it awaits in a finally block: the next close ends it there
        except BaseException:  # noqa: BLE001, S110  what torn down code raises concerns nobody
            pass
        return True
    # Collected as garbage, it would go on in whatever flow runs then, and take what comes for that one.
    _left.append(coroutine)
    return False

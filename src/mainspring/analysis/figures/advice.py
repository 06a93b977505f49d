"""What is worth a look, of all the figures: at most five things, the worst first, each with its figure and its place.

What was counted too seldom is not reported: a share of three is no share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, TypeAlias
from urllib.parse import quote, urlencode

from mainspring.analysis.figures.figures import Advice, AdviceKind, CommandFigures, Figures, WorkflowFigures
from mainspring.analysis.reading.model import ANY_STATE, COMPENSATED, Machine, Transition
from mainspring.analysis.texts import lasting, percent
from mainspring.app.commands import command
from mainspring.core.failures import ChildFailed, DeadlinePassed, SendFailed
from mainspring.core.messages import type_of

ADVICE_SHOWN: Final = 5
OF_ONE_KIND: Final = 2
LEAST: Final = 20
"""Stays, answers and timers that are needed before anything is said of them."""
LEAST_INPUTS: Final = 100
"""Inputs that are needed in a state before one that never came is reported."""
MOST_TIME: Final = 0.5
LONG_STAY_SECONDS: Final = 60.0
"""A state that is left sooner is not reported, whatever part of all time that is."""
OFTEN_FAILED: Final = 0.05
OFTEN_RETRIED: Final = 0.2
LONG_WAIT_SECONDS: Final = 1.0
LONG_WAIT_TIMES: Final = 2
_ATTEMPTS: Final = " `mainspring log` of one of its instances tells each attempt and its error."

# That these never come is as it should be.
_TROUBLE: Final = frozenset({COMPENSATED, *(type_of(cls).name for cls in (SendFailed, ChildFailed, DeadlinePassed))})

Machines: TypeAlias = Callable[[str], Machine | None]
"""A workflow as its code says it is, by its name; None where its code is not there."""


def advice_of(figures: Figures, machines: Machines = lambda _: None) -> tuple[Advice, ...]:
    """Return what is worth a look, the worst first.

    What fails comes before what takes long, and that before what never happens, which is often as it should be. Code
    is asked for only where enough has happened to say what of it never did.

    >>> from mainspring.engine.recording.stored_values import moment
    >>> advice_of(Figures(moment(0), None, None, 0, 0, ()))
    ()
    """
    own = figures.workflows
    told = (
        _worst(found for workflow in own for found in _failures(workflow)),
        _worst(found for workflow in own for found in _states(workflow)),
        _worst(found for workflow in own for found in _waits(workflow)),
        _worst(found for workflow in own for found in _retries(workflow)),
        _worst(found for workflow in own for found in _timers(workflow)),
        _worst(found for workflow in own for found in _branches(workflow, machines)),
    )
    return tuple(islice((advice for kind in told for advice in kind), ADVICE_SHOWN))


_Weighed: TypeAlias = tuple[float, Advice]


def _worst(found: Iterable[_Weighed]) -> list[Advice]:
    ranked = sorted(found, key=lambda each: (-each[0], each[1].workflow, each[1].subject))
    return [advice for _, advice in ranked[:OF_ONE_KIND]]


# ---- what fails, and what takes long


def _failures(of: WorkflowFigures) -> Iterator[_Weighed]:
    for each in of.commands:
        if each.answered >= LEAST and (each.failure_rate or 0) >= OFTEN_FAILED:
            text = f"{each.failed:,} of {each.answered:,} answers to {each.type} are failures.{_ATTEMPTS}"
            found = _of_command("failures", of, each, percent(each.failure_rate), text, _instances(of))
            yield each.failed / each.answered, found


def _states(of: WorkflowFigures) -> Iterator[_Weighed]:
    # Where there is but one state, all time is spent there.
    for each in of.states if len(of.states) > 1 else ():
        stay = each.dwell
        if stay is not None and stay.count >= LEAST and each.share >= MOST_TIME:
            if stay.total / stay.count < LONG_STAY_SECONDS:
                continue
            long = lasting(stay.total / stay.count)
            text = f"{percent(each.share)} of all time is spent in {each.state}, on average {long} a stay."
            asked = {"workflow": of.workflow, "state": each.state}
            link = f"#/instances?{urlencode(asked)}"
            ask = command("ls", "--workflow", of.workflow, "--state", each.state)
            yield stay.total, _advice("time in a state", of, each.state, percent(each.share), text, link, ask)


def _waits(of: WorkflowFigures) -> Iterator[_Weighed]:
    for each in of.commands:
        if each.calls < LEAST or each.handling is None or each.until_answer is None:
            continue
        waited = each.until_answer.p50 - each.handling.p50
        # Where most are tried again, the pauses between attempts are what takes so long.
        is_long = waited >= LONG_WAIT_SECONDS and waited >= LONG_WAIT_TIMES * each.handling.p50
        if is_long and (each.retry_rate or 0) < MOST_TIME:
            whole, own = lasting(each.until_answer.p50), lasting(each.handling.p50)
            text = (
                f"Half of {each.type} are answered within {whole}, of which its handler takes {own}: "
                "the rest is waiting for a worker, a place in its pool, or its rate."
            )
            found = _of_command("waiting for a worker", of, each, lasting(waited), text, command("doctor"))
            yield waited * each.calls, found


def _retries(of: WorkflowFigures) -> Iterator[_Weighed]:
    for each in of.commands:
        if each.calls >= LEAST and (each.retry_rate or 0) >= OFTEN_RETRIED:
            text = f"{each.retried:,} of {each.calls:,} calls for {each.type} needed more than one attempt.{_ATTEMPTS}"
            found = _of_command("retries", of, each, percent(each.retry_rate), text, _instances(of))
            yield each.retried / each.calls, found


def _instances(of: WorkflowFigures) -> str:
    return command("ls", "--workflow", of.workflow)


def _of_command(
    kind: AdviceKind, of: WorkflowFigures, each: CommandFigures, figure: str, text: str, ask: str
) -> Advice:
    link = f"{_page(of)}?{urlencode({'tab': 'bottlenecks'})}"
    return _advice(kind, of, each.type, figure, text, link, ask)


# ---- what never happens


def _timers(of: WorkflowFigures) -> Iterator[_Weighed]:
    for each in of.timers:
        if not each.fired and each.over >= LEAST:
            text = (
                f"{each.type} was set {each.set:,} times and never fired; {each.over:,} of those instances have ended. "
                "Often that is as it should be."
            )
            yield each.over, _never("timer never fires", of, each.type, f"0 of {each.over:,}", text)


def _branches(of: WorkflowFigures, machines: Machines) -> Iterator[_Weighed]:
    """Return the steps that the code has and that never happened, where many others did in that state."""
    inputs: Counter[str | None] = Counter()
    for step in of.steps:
        inputs[step.source] += step.count
    if not any(count >= LEAST_INPUTS for count in inputs.values()):
        return
    machine = machines(of.workflow)
    if machine is None:
        return
    initial = next((state.name for state in machine.states if state.initial), None)
    came = Counter({initial: inputs.pop(None, 0)})
    came.update(inputs)
    happened = {(step.source or initial, step.message, step.target) for step in of.steps}
    known = {(source, message) for source, message, _ in happened}
    told: set[tuple[str, str]] = set()
    for each in machine.transitions:
        spot, count = (each.source, each.message), came[each.source]
        if count < LEAST_INPUTS or spot in told or not _could_happen(machine, each):
            continue
        if spot not in known:
            told.add(spot)
            text = f"{count:,} inputs came in {each.source}, and {each.message} was never among them."
        elif each.target != ANY_STATE and (*spot, each.target) not in happened:
            text = f"{count:,} inputs came in {each.source}, and {each.message} never led to {each.target} there."
        else:
            continue
        subject = f"{each.source}: {each.message}" + (f" to {each.target}" if spot in known else "")
        checked = f"{text} MS204 of `mainspring lint` says of a case whether it can match at all."
        yield count, _never("branch never taken", of, subject, f"0 of {count:,}", checked)


def _could_happen(machine: Machine, each: Transition) -> bool:
    """Return True if it was read for certain, and is no failure and no timer: other advice covers those."""
    unread = any(
        place.source in ("", each.source) and place.message in ("", each.message) for place in machine.unresolved
    )
    return not (unread or each.ignored or each.message in _TROUBLE or "timer" in each.ways)


def _never(kind: AdviceKind, of: WorkflowFigures, subject: str, figure: str, text: str) -> Advice:
    ask = command("diagram", of.workflow, "--from", "both")
    return _advice(kind, of, subject, figure, text, _page(of), ask)


def _page(of: WorkflowFigures) -> str:
    return f"#/workflows/{quote(of.workflow, safe='')}"


def _advice(kind: AdviceKind, of: WorkflowFigures, subject: str, figure: str, text: str, link: str, ask: str) -> Advice:
    return Advice(kind, of.workflow, subject, figure, text, link, ask.strip("`"))

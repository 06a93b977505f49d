"""Where instances can be: every state, together with what is still on its way there.

A situation is a state with the timers that are set, the tasks that are open, and the commands and children whose
outcome has not come yet. All situations are found by going on from the beginning: each message that can come, by each
transition that it has there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mainspring.analysis.lint.world import World
from mainspring.analysis.reading.model import ANSWERS_NO_TASK, ANY_STATE, Gap, Machine, Output, Place, Transition
from mainspring.core.decisions import task_timer_key

MOST_SITUATIONS: Final = 3_000

Kind: TypeAlias = Literal["timer", "task", "command", "child", "join", "then"]

_FAILURE: Final = "SendFailed"
_CHILD_ENDS: Final = ("mainspring.ChildCompleted", "mainspring.ChildFailed")


class Coming(Struct, frozen=True):
    """Something that is on its way: which messages it can bring, and whether one of them will come for sure.

    `many` says that there may be several of it.
    """

    kind: Kind
    key: str
    messages: frozenset[str]
    sure: bool
    many: bool = False


class Situation(Struct, frozen=True):
    """A state, and what is on its way. `clear` is False where something on the way here could not be read."""

    state: str
    coming: frozenset[Coming]
    owes_reply: bool = False
    clear: bool = True


class Runs:
    """All situations of a workflow."""

    def __init__(self, machine: Machine, world: World) -> None:
        self.machine = machine
        self.world = world
        self.inputs = {message.name for message in machine.inputs}
        self.brought = self._all_brought()
        self.unexplained = self._unexplained()
        self.gaps: dict[tuple[str, str], list[Gap]] = {}
        for gap in machine.gaps:
            if not gap.begins:
                self.gaps.setdefault((gap.source, gap.message), []).append(gap)
        self.unclear = {(each.source, each.message) for each in machine.unresolved}
        self.entered: dict[Situation, Transition] = {}
        self.ended: list[tuple[Transition, Situation]] = []
        self._came: dict[Situation, tuple[Situation | None, str]] = {}
        """The situation before, and the input that led on from it."""
        self.complete = self._explore()

    # ---- how an instance came there

    def witness(self, situation: Situation) -> tuple[str, ...]:
        """Return the inputs by which an instance comes into a situation: no fewer lead there."""
        inputs: list[str] = []
        at: Situation | None = situation
        while at in self._came:
            at, message = self._came[at]
            inputs.append(message)
        return tuple(reversed(inputs))

    def witness_in(self, state: str) -> tuple[str, ...]:
        """Return the fewest inputs that lead into a state, () if none are known."""
        first = next((situation for situation in self.entered if situation.state == state), None)
        return () if first is None else self.witness(first)

    def witness_of(self, transition: Transition) -> tuple[str, ...]:
        """Return the fewest inputs of which the last is taken by a transition, () if none are known."""
        if transition.begins:
            return (_input(transition),)
        for situation in self.entered:
            if situation.state == transition.source and any(
                is_of(transition.failed, origin) for origin in self.origins(situation, transition.message)
            ):
                return (*self.witness(situation), _input(transition))
        return ()

    # ---- what can come

    def outside(self, message: str) -> bool:
        """Return True if a message can come at any time: nothing that the workflow asks for brings it."""
        return message not in self.brought or message in self.world.gives(self.machine.workflow)

    def origins(self, situation: Situation, message: str) -> Iterator[Coming | None]:
        """Yield what can bring a message in a situation; None stands for the world outside."""
        for coming in sorted(situation.coming, key=lambda each: (each.kind, each.key)):
            if message in coming.messages:
                yield coming
        if self.outside(message):
            yield None

    def _all_brought(self) -> set[str]:
        outputs = [output for transition in self.machine.transitions for output in transition.outputs]
        known = {name for output in outputs for coming in self._coming(output) for name in coming.messages}
        unknown = any(self._is_unknown(output) for output in outputs)
        begins = {message.name for message in self.machine.inputs if message.begins}
        # What no known handler returns comes back by one of those of which nothing is known.
        return known | (self.inputs - begins - self.world.gives(self.machine.workflow) if unknown else set())

    def _unexplained(self) -> frozenset[str]:
        """Return what may come back by a command whose answers are unknown."""
        outputs = [output for transition in self.machine.transitions for output in transition.outputs]
        known = {name for output in outputs for coming in self._known_coming(output) for name in coming.messages}
        begins = {message.name for message in self.machine.inputs if message.begins}
        return frozenset(self.inputs - known - begins)

    def _is_unknown(self, output: Output) -> bool:
        return (
            output.decision == "Send"
            and output.message is not None
            and self.world.destination(output.message).results is None
        )

    def _coming(self, output: Output) -> Iterator[Coming]:
        """Yield the messages that a decision leads to."""
        if self._is_unknown(output):
            messages = frozenset(self._unexplained())
            yield Coming("command", output.message or "", messages, sure=False, many=output.repeated)
        else:
            yield from self._known_coming(output)

    def _known_coming(self, output: Output) -> Iterator[Coming]:
        name = output.message or ""
        match output.decision:
            case "Schedule":
                key = output.key or name
                yield Coming("timer", key, frozenset(output.messages), sure=True, many=output.repeated)
            case "Ask":
                answers = output.messages[: len(output.messages) - output.timers]
                timers = output.messages[len(output.messages) - output.timers :]
                key = output.key or name
                yield Coming("task", key, frozenset(answers), sure=bool(output.when or timers))
                for timer in timers:
                    yield Coming("timer", task_timer_key(key), frozenset({timer}), sure=True)
            case "Send":
                destination = self.world.destination(name)
                if destination.results is not None:
                    back = (
                        {*destination.results, _FAILURE} if destination.taker == "handler" else {*destination.results}
                    )
                    yield from self._command("command", output, back, sure=destination.taker == "handler")
            case "StartChild":
                results = self.world.children(name)
                yield from self._command("child", output, {*(results or ()), *_CHILD_ENDS}, sure=results is not None)
            case "FanOut":
                yield Coming("join", output.messages[0], frozenset(output.messages), sure=True)
            case "Compensate" if output.messages:
                yield Coming("then", output.messages[0], frozenset(output.messages), sure=True)
            case _:
                pass

    def _command(self, kind: Kind, output: Output, back: Iterable[str], *, sure: bool) -> Iterator[Coming]:
        messages = frozenset(back) & self.inputs
        if messages:
            yield Coming(kind, output.message or "", messages, sure=sure, many=output.repeated)

    # ---- going on

    def _explore(self) -> bool:
        """Find all situations; return whether all were found."""
        waiting: deque[Situation] = deque()
        for transition in self.machine.transitions:
            if transition.begins:
                start = Situation(transition.source, frozenset(), owes_reply=True)
                self._go(start, transition, None, waiting)
        while waiting:
            if len(self.entered) > MOST_SITUATIONS:
                return False
            situation = waiting.popleft()
            for message in sorted(self.inputs):
                for origin in self.origins(situation, message):
                    self._take(situation, message, origin, waiting)
        return True

    def _take(self, situation: Situation, message: str, origin: Coming | None, waiting: deque[Situation]) -> None:
        for transition in self.machine.leaving(situation.state):
            past_task = origin is not None and origin.kind == "task" and ANSWERS_NO_TASK in transition.guard
            goes = transition.message == message and is_of(transition.failed, origin)
            if goes and not transition.begins and not past_task:
                self._go(situation, transition, origin, waiting)
        if (situation.state, message) in self.gaps and origin is not None and origin.kind == "timer":
            after = Situation(
                situation.state, _without(situation.coming, origin), situation.owes_reply, situation.clear
            )
            self._enter(after, self.entered[situation], waiting, (situation, message))

    def _go(
        self, situation: Situation, transition: Transition, origin: Coming | None, waiting: deque[Situation]
    ) -> None:
        replied = any(output.decision == "Reply" for output in transition.outputs)
        owes = situation.owes_reply and not replied
        clear = situation.clear and (transition.source, transition.message) not in self.unclear
        refuses = any(output.decision == "RefuseAnswer" for output in transition.outputs)  # its task stays open
        coming = situation.coming if origin is None or refuses else _without(situation.coming, origin)
        for output in transition.outputs:
            coming = self._after(coming, output)
        after = Situation(transition.target, coming, owes, clear)
        if transition.ends is not None:
            self.ended.append((transition, after))
        elif transition.target != ANY_STATE and not self._undoes(transition):
            by = transition if transition.target != transition.source or transition.begins else None
            came = (None if transition.begins else situation, _input(transition))
            self._enter(after, by or self.entered.get(situation, transition), waiting, came)

    def _enter(
        self, situation: Situation, by: Transition, waiting: deque[Situation], came: tuple[Situation | None, str]
    ) -> None:
        if situation not in self.entered:
            self.entered[situation] = by
            self._came[situation] = came
            waiting.append(situation)

    def _undoes(self, transition: Transition) -> bool:
        """Return True if a transition undoes and ends then: until it has, what comes is kept and not stepped."""
        return any(output.decision == "Compensate" and not output.messages for output in transition.outputs)

    def _after(self, coming: frozenset[Coming], output: Output) -> frozenset[Coming]:
        """Return what is on its way after a decision."""
        if output.decision == "CancelSchedule":
            return frozenset(each for each in coming if each.kind != "timer" or each.key != output.key)
        if output.decision in ("CloseTask", "Ask") and output.key is not None:
            coming = frozenset(each for each in coming if not _is_of_task(each, output.key))
        if output.decision == "Compensate":
            coming = frozenset()
        for each in self._coming(output):
            same = next(
                (
                    other
                    for other in coming
                    if (other.kind, other.key, other.messages) == (each.kind, each.key, each.messages)
                ),
                None,
            )
            if same is not None:
                coming = coming - {same} | {replace(each, many=True)}
            else:
                coming |= {each}
        return coming


def is_of(failed: tuple[str, ...], origin: Coming | None) -> bool:
    """Return True if what is so of the failure of some commands is so of what comes."""
    return not failed or origin is None or origin.key in failed


def _input(transition: Transition) -> str:
    return f"{transition.message} when {transition.guard}" if transition.guard else transition.message


def entry_place(transition: Transition, machine: Machine) -> Place:
    """Return where to look for the way into a state."""
    return transition.decided or machine.place or Place("", 0)


def _without(coming: frozenset[Coming], origin: Coming) -> frozenset[Coming]:
    """Return what is still on its way after something has come."""
    if origin.kind == "task":
        return frozenset(each for each in coming if not _is_of_task(each, origin.key))
    return coming if origin.many else coming - {origin}


def _is_of_task(coming: Coming, key: str) -> bool:
    return (coming.kind == "task" and coming.key == key) or (
        coming.kind == "timer" and coming.key == task_timer_key(key)
    )

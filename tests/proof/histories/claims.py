"""What the calls to one instance claim: operations to look for an order of, and claims that contradict each other.

What the public verbs promise, and is held here:

| told | claims |
|---|---|
| `stepped`, a reply | it was decided while the call lasted |
| `accepted`, `suspended` | it will be decided, once, and before what is sent from now on; a read may come before that |
| … once more | the instance had ended, and what was accepted before is a dead letter |
| `duplicate` | the same message is there under its id, accepted or as a dead letter: by another call or by this one, |
| | if the answer to its commit was lost and it was made again |
| `DuplicateIdError` | another message was accepted before under the same id, or was a dead letter |
| `dead letter` | while the call lasted, there was an instance that does not take it, or none |
| an answer that was the first | it is the task's only answer |
| one that was not | somebody else's was, as they are named |
| a state | all that was decided before the call began is in it, and nothing that was never sent |
| a result | the same, of the end |
| nothing, an error | it may be decided at any later moment, once, or never |
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from tests.proof.histories.calls import Call
from tests.proof.histories.model import ANYTHING, NOTHING, End, NotTaken, See, Take
from tests.proof.histories.search import NEVER, Operation

TOOK = frozenset({"stepped", "accepted", "suspended"})


@dataclass(frozen=True)
class Claims:
    """Operations, and what no order could ever explain."""

    operations: tuple[Operation, ...]
    contradictions: tuple[str, ...]


def claims(calls: Iterable[Call]) -> Claims:
    """Return what the calls to one instance claim."""
    found = _Claims()
    by_id: defaultdict[str, list[Call]] = defaultdict(list)
    by_task: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.verb == "answer" and call.task is not None:
            by_task[call.task].append(call)
        elif call.verb in ("send", "request"):
            by_id[call.id].append(call)
        else:
            found.operations += _read(call)
    for same in by_id.values():
        found.sent(same)
    for task, answers in by_task.items():
        found.answered(task, answers)
    return Claims(tuple(_decided_at_rest(found.operations)), tuple(found.contradictions))


def _read(call: Call) -> Iterator[Operation]:
    if call.ended is None or call.outcome == "unknown":
        return
    match call.outcome:
        case "seen" | "nothing":
            state = NOTHING if call.outcome == "nothing" else call.value
            yield _during(call, See(state, at_rest=call.verb == "last look"))
        case "completed" | "failed" as status:
            yield _during(call, End(status, call.value))
        case _:
            raise ValueError(f"{call} has an outcome that no read has")


def _during(call: Call, what: Any) -> Operation:
    """Return what changes nothing, and was so at a moment of the call."""
    assert call.ended is not None
    return Operation(call.name, what, call.began, by=call.ended, known=call.ended, writes=False)


def _decided_at_rest(operations: list[Operation]) -> Iterator[Operation]:
    """Have all that was acknowledged decided before the first look at rest."""
    rest = min(
        (each.began for each in operations if isinstance(each.what, See) and each.what.at_rest),
        default=NEVER,
    )
    for each in operations:
        if each.writes and each.needed and each.began < rest < each.by:
            yield replace(each, by=math.nextafter(rest, 0))
        else:
            yield each


class _Claims:
    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.contradictions: list[str] = []

    # ---- messages

    def sent(self, calls: list[Call]) -> None:
        """Claim what calls with one id do: those with the same message are one write, and only one message has it."""
        by_message: defaultdict[Any, list[Call]] = defaultdict(list)
        for call in calls:
            by_message[type(call.message), call.message].append(call)
        groups = list(by_message.values())
        names = frozenset(group[0].name for group in groups)
        for group in groups:
            others = [call for call in calls if call not in group]
            refused = [call for call in others if call.outcome == "refused"] if len(groups) == 2 else []
            self._message(group, refused, names - {group[0].name})
            if not others and any(call.outcome == "refused" for call in group):
                self.contradictions.append(f"{group[0].id} was refused, and nobody has used its id for anything else")

    def _message(self, group: list[Call], refused: list[Call], instead: frozenset[str]) -> None:
        first = group[0]
        buried = [call for call in group if call.outcome == "dead letter"]
        self.operations += [replace(_during(call, NotTaken(call.message)), name=f"{call.name} late") for call in buried]
        took = self._last_taken(sorted((call for call in group if call.outcome in TOOK), key=lambda call: call.began))
        replied = [call for call in group if call.outcome == "replied"]
        # A dead letter makes its id known, too.
        letter = min((call.began for call in buried), default=NEVER)
        repeated = [call for call in group if call.outcome == "duplicate" and _ended(call) < letter]
        if any(call.value != replied[0].value for call in replied):
            self.contradictions.append(f"{first.id} has two replies: {_names(replied)}")
        # Who took it knows when; else it was one of those who were told nothing, or a reply, or that it was there.
        may_have = took or [call for call in group if call.outcome == "unknown"] + replied + repeated
        if not may_have:
            return
        began = min(call.began for call in may_have)
        told = [*took, *replied, *repeated, *(call for call in refused if _ended(call) < letter)]
        if early := [call for call in told if _ended(call) < began]:
            self.contradictions.append(f"{first.id} was known before it was sent: {_names(early)}")
        decided = [call for call in (*took, *replied) if call.outcome in ("stepped", "replied")]
        take = Take(
            first.message,
            reply=replied[0].value if replied else ANYTHING,
            late="maybe" if told and not decided else "never",
        )
        self._write(first.name, take, began, decided, told, instead)

    def _last_taken(self, took: list[Call]) -> list[Call]:
        """Claim of what was accepted more than once that all but the last came too late."""
        for call, again in pairwise(took):
            if call.outcome == "stepped":
                self.contradictions.append(f"{call.id} was taken twice: {_names(took)}")
            known = _ended(call)
            take, by = Take(call.message, late="surely"), max(known, _ended(again))
            late = Operation(f"{call.name} late", take, call.began, by=by, known=known)
            self.operations.append(late)
        return took[-1:]

    # ---- answers to tasks

    def answered(self, task: str, calls: list[Call]) -> None:
        """Claim that one answer of several was taken, and that all were told which."""
        firsts = [call for call in calls if call.outcome == "first"]
        if len(firsts) > 1:
            self.contradictions.append(f"{task} has {len(firsts)} first answers: {_names(firsts)}")
        told = [call for call in calls if call.outcome in ("first", "later")]
        winners = {call.value["by"] for call in told}
        if len(winners) > 1:
            self.contradictions.append(f"{task} was answered by one only, and {sorted(winners)} were named")
        by_person = {call.id: call for call in calls}
        for call in told:
            winner = by_person.get(call.value["by"])
            if winner is None:
                self.contradictions.append(f"{task} was answered by {call.value['by']}, who never did: {call.name}")
            elif call.value["message"] != winner.message:
                self.contradictions.append(f"{task} was answered otherwise than {call.name} was told")
            elif _ended(call) < winner.began:
                self.contradictions.append(f"{call.name} was told of an answer to {task} before there was one")
        names = frozenset(call.name for call in calls)
        for call in calls:
            if call.outcome == "refused":
                continue
            knew = [other for other in told if other.value["by"] == call.id]
            decided = [call] if call.outcome == "first" and call.value["status"] == "stepped" else []
            take = Take(call.message, task=task, late="maybe" if knew and not decided else "never")
            self._write(call.name, take, call.began, decided, knew, names - {call.name})

    def _write(
        self, name: str, take: Take, began: float, decided: list[Call], told: list[Call], instead: frozenset[str]
    ) -> None:
        by = min((_ended(call) for call in decided), default=NEVER)
        known = min((_ended(call) for call in told), default=NEVER)
        self.operations.append(Operation(name, take, began, by=by, known=known, needed=bool(told), instead=instead))


def _ended(call: Call) -> float:
    return NEVER if call.ended is None else call.ended


def _names(calls: Iterable[Call]) -> str:
    return ", ".join(f"{call.name} ({call.outcome})" for call in calls)

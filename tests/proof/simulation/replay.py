"""Fold and decide once more, over all that was ever committed to a stream: no code of the engine has a hand in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import json

from mainspring import (
    Compensate,
    Compensated,
    Complete,
    Fail,
    FanOut,
    InitiatedBy,
    Publish,
    Published,
    Received,
    Replied,
    Reply,
    Send,
    Sent,
    StartChild,
    Workflow,
)
from tests.proof.crash.evidence import INPUTS, Recorded
from tests.proof.crash.journey import MESSAGES
from tests.proof.simulation.workflows import OWN_MESSAGES

Shape = tuple[str, str | None, Any]

TYPES: Final[Mapping[str, type[Any]]] = {**MESSAGES, **OWN_MESSAGES}
_NAMES: Final = {cls: name for name, cls in TYPES.items()}
# What decide says, and neither timers nor tasks: these have checks of their own.
_DECIDED: Final = frozenset(
    {"Sent", "Published", "Replied", "ChildStarted", "FannedOut", "Completed", "Failed", "Compensating"}
)


class Fold:
    """A stream, folded event by event. `states` is the state after each version."""

    def __init__(
        self,
        workflow: Workflow[Any, Any, Any],
        stream: Iterable[Recorded],
        asked: Mapping[str, Any],
        versions: Mapping[int, Workflow[Any, Any, Any]] | None = None,
    ) -> None:
        self.states: dict[int, Any] = {}
        self.complaints: list[tuple[int, str]] = []
        self._asked = asked
        self._open: list[Shape] = []
        self._rows: dict[str, Recorded] = {}
        state = workflow.initial_state
        version, undoing = 0, False
        for row in stream:
            version = row.version
            self._rows[row.output_id] = row
            if row.event in INPUTS:
                self._close(version)
                message = self.message(row)
                self._open = [shape for d in workflow.decide(message, state) or () if (shape := _of_decision(d))]
            elif row.event in _DECIDED and "undoes" not in row.detail and not (undoing and row.event == "Failed"):
                self._meet(row)
            # Somebody outside may begin it; it ends without a decision in any case.
            undoing = undoing or row.event == "Compensating"
            if row.event == "Migrated" and versions is not None:
                workflow = versions[row.detail["version"]]
                state = workflow.initial_state
                for earlier in list(self._rows.values()):
                    state = self._after(workflow, state, earlier)
            state = self._after(workflow, state, row)
            self.states[version] = state
        self._close(version + 1)

    def message(self, row: Recorded) -> Any:
        """Return the message of an event; of one that was not kept, what was asked for, or the timer."""
        if row.type is None:
            timer = self._rows.get(row.message_id or "")
            return self._asked.get(row.message_id or "") if timer is None else self.message(timer)
        return json.decode(row.body or b"", type=TYPES[row.type])

    def _meet(self, row: Recorded) -> None:
        if row.event == "Compensating" and row.detail.get("cancelled"):
            return
        expected = self._open.pop(0) if self._open else None
        found = _of_row(row)
        if expected != found:
            self.complaints.append((row.version, f"recorded {found}, decide says {expected}"))

    def _close(self, version: int) -> None:
        self.complaints += [(version, f"decide says {shape}, which was not recorded") for shape in self._open]
        self._open = []

    def _after(self, workflow: Workflow[Any, Any, Any], state: Any, row: Recorded) -> Any:
        event = self._event(row)
        return state if event is None else workflow.evolve(state, event) or state

    def _event(self, row: Recorded) -> Any:
        match row.event:
            case "InitiatedBy":
                return InitiatedBy(self.message(row))
            case "Received":
                return Received(self.message(row))
            case "Sent":
                return Sent(self.message(row))
            case "Published":
                return Published(self.message(row))
            case "Replied":
                return Replied(self.message(row))
            case "Compensated":
                return Compensated(self.message(row))
            case _:
                return None


def _of_decision(decision: Any) -> Shape | None:
    match decision:
        case Send(message):
            return _shape("Sent", message)
        case Publish(message):
            return _shape("Published", message)
        case Reply(message):
            return _shape("Replied", message)
        case StartChild(message):
            return _shape("ChildStarted", message)
        case FanOut(messages):
            return "FannedOut", None, [json.encode(message).decode() for message in messages]
        case Complete(result):
            return _shape("Completed", result)
        case Fail(reason):
            return "Failed", None, reason
        case Compensate(reason):
            return "Compensating", None, reason
        case _:
            return None


def _shape(event: str, message: Any) -> Shape:
    return (event, None, None) if message is None else (event, _NAMES[type(message)], json.encode(message))


def _of_row(row: Recorded) -> Shape:
    match row.event:
        case "FannedOut":
            return row.event, None, [body for _, _, body in json.decode(row.body or b"")["messages"]]
        case "Failed" | "Compensating":
            return row.event, None, row.detail.get("reason")
        case _:
            return row.event, row.type, row.body

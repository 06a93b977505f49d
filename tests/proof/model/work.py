"""Work for a store: units of every meaning, most of which fit what is there, and some of which are stale or wrong."""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec.structs import replace

from mainspring.port.attributes import AttributeRow
from mainspring.port.digests import digested
from mainspring.port.records import (
    ARMED,
    DeadLetter,
    EventRow,
    InputRow,
    OutputKey,
    OutputRow,
    Ref,
    Remembered,
    Retry,
    Snapshot,
    Status,
    Unit,
)
from mainspring.port.tasks import Hand, TaskAnswer, TaskFilter, TaskOpening, TaskWork
from tests.proof.model.tables import Tables

WORKFLOWS = ("Orders", "Meters")
# Of this one the history is not kept.
TRIMMED = "Meters"
REFS = tuple(Ref(workflow, f"i-{n}") for workflow in WORKFLOWS for n in range(2))
DESTINATIONS = ("Charge", "Ship", *WORKFLOWS)
KEYS = ("Timeout", "Reminder")
PEOPLE = ("ann", "bob", "cho")
ROLES = ("manager", "clerk")
MESSAGES = tuple(f"m-{n}" for n in range(8))
RESULTS = ("r-0", "r-1")
STATES = ("A", "B", None)
BODIES = (b"{}", b"{}", b"{}", b"[]")
STATUSES: tuple[Status, ...] = (
    *("running", "running", "running", "running", "suspended", "compensating"),
    *("completed", "completed", "failed", "cancelled", "terminated"),
)
SECOND_US = 1_000_000

# What a unit may consist of. Each meaning is a list of parts, and any other part may come on top.
PARTS = (
    "settle",
    "retry",
    "accept",
    "bury",
    "cancel",
    "consume",
    "release",
    "remember",
    "discard",
    "tasks",
    "direct",
    "handle",
)
MEANINGS: dict[str, tuple[str, ...]] = {
    "step": ("step",),
    "direct step": ("step", "direct"),
    "step of the inbox": ("step", "consume"),
    "step of a result": ("step", "settle"),
    "step with tasks": ("step", "tasks"),
    "step that cancels": ("step", "cancel"),
    "failed for good": ("step", "settle", "bury"),
    "acceptance": ("accept",),
    "settlement": ("settle",),
    "settlement with inputs": ("settle", "accept"),
    "retry": ("retry",),
    "dead letter": ("settle", "bury"),
    "nobody takes it": ("bury",),
    "remembering": ("remember",),
    "discard": ("discard",),
    "step that handles": ("step", "handle"),
    "giving back": ("release",),
}


class Work:
    """Makes units from a seed, for a store that should be as the model says."""

    def __init__(self, tables: Tables, worker: int, seed: int) -> None:
        self._tables = tables
        self._worker = worker
        self.random = Random(seed)  # noqa: S311  a test's own dice
        # What the units of a batch hope for: each is built on the one before it.
        self._versions: dict[Ref, int] = {}
        self._used: set[OutputKey] = set()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def some(self, items: tuple[str, ...], most: int = 2) -> tuple[str, ...]:
        return tuple(self.random.sample(items, self.random.randint(0, min(most, len(items)))))

    def unit(self, meaning: str) -> Unit:
        """Return a unit that means this, and perhaps more."""
        ref = self.random.choice(REFS)
        parts = [*MEANINGS[meaning], *((self.random.choice(PARTS),) if self.chance(0.25) else ())]
        fields: dict[str, Any] = {}
        for part in dict.fromkeys(parts):
            if part not in ("step", "tasks", "bury"):
                fields |= getattr(self, f"_{part}")(ref)
        if "bury" in parts:
            fields |= self._bury(ref, fields.get("settles", ()), alone="step" not in parts)
        unit = self._step(ref, fields) if "step" in parts else Unit(ref.workflow, ref.id, **fields)
        return replace(unit, tasks=self._tasks(ref, unit)) if "tasks" in parts else unit

    # ---- parts

    def _step(self, ref: Ref, fields: dict[str, Any]) -> Unit:
        row = self._tables.instances.get(ref)
        version = self._versions.get(ref, row.version if row else 0)
        if self.chance(0.06):
            version = max(0, version + self.random.choice((-1, 1)))
        input = self._input_event(ref, version + 1, fields)
        outputs = tuple(self._output(input.version + n) for n in range(1, self.random.randint(1, 3)))
        written = [
            EventRow(o.version, "Sent", 0, f"{o.destination}!", 1, b'{"n":1}', cause=input.version) for o in outputs
        ]
        events = (input, *written)
        if self.chance(0.05):
            events, outputs = (), ()
        self._versions[ref] = version + len(events)
        status = self.random.choice(STATUSES) if self.chance(0.5) else "running"
        unit = Unit(
            ref.workflow,
            ref.id,
            row.key if row and self.chance(0.7) else None,
            version,
            events,
            status,
            self.random.choice(STATES),
            "boom" if status == "suspended" else None,
            self.random.randint(1, 3),
            input.context,
            self.chance(0.1),
            outputs,
            dedupe=input.message_id if events else None,
            attributes=self._attributes() if self.chance(0.3) else None,
            **fields,
        )
        return self._remembering_state(unit) if events else unit

    def _remembering_state(self, unit: Unit) -> Unit:
        last = unit.events[-1].version
        if unit.workflow == TRIMMED:
            hollow = tuple(_hollow(event) for event in unit.events)
            return replace(unit, events=hollow, snapshot=Snapshot(last, "", "S", 1, b"{}"), trims=True)
        return replace(unit, snapshot=Snapshot(last, "f", "S", 1, b"{}")) if self.chance(0.1) else unit

    def _input_event(self, ref: Ref, version: int, fields: dict[str, Any]) -> EventRow:
        context = b'{"correlation_id":"%d"}' % self.random.randrange(3)
        actor = "ann" if self.chance(0.1) else None
        waiting = self._tables.inbox.get(fields.get("consumes", 0))
        if waiting is not None and self.chance(0.9):
            row = waiting.row
            return EventRow(
                version, "Received", 0, row.type, 1, row.body, kind=row.kind, message_id=row.message_id, context=context
            )
        if fields.get("settles") and self.chance(0.7):
            cause = fields["settles"][0].version
            return EventRow(version, "Received", 0, "Done", 1, b"{}", kind="result", cause=cause, actor=actor)
        body, message = self.random.choice(BODIES), self.random.choice(MESSAGES)
        return EventRow(
            version, "Received", 0, "Go", 1, body, kind="command", message_id=message, context=context, actor=actor
        )

    def _output(self, version: int) -> OutputRow:
        after_us, at_us = self.random.choice((0, 0, 5 * SECOND_US)), None
        if self.chance(0.1):
            at_us = self._tables.clock.now_us() + self.random.choice((-1, 4)) * SECOND_US
        claimed, priority = self.chance(0.6), self.random.randrange(2)
        if self.chance(0.4):
            return OutputRow(version, "timer", "Orders", after_us, at_us, self.random.choice(KEYS), priority, claimed)
        key = ARMED if self.chance(0.3) else None
        return OutputRow(version, "send", self.random.choice(DESTINATIONS), after_us, at_us, key, priority, claimed)

    def _attributes(self) -> tuple[AttributeRow, ...]:
        text = AttributeRow("customer", "text", self.random.choice(PEOPLE))
        return (AttributeRow("amount", "number", number=float(self.random.randrange(3))), text)[
            : self.random.randint(0, 2)
        ]

    def _outputs(self, most: int) -> list[OutputKey]:
        """Return outputs, mostly this worker's own."""
        held = [key for key, one in self._tables.outbox.items() if one.owner == self._worker and key not in self._used]
        if self.chance(0.05):
            held = list(self._tables.outbox) or [OutputKey(10**9, 1)]
        found = self.random.sample(held, min(len(held), self.random.randint(1, most)))
        self._used.update(found)
        return found

    def _settle(self, ref: Ref) -> dict[str, Any]:
        return {"settles": tuple(self._outputs(2))}

    def _retry(self, ref: Ref) -> dict[str, Any]:
        attempts, after_us = self.random.randrange(4), self.random.choice((0, 2 * SECOND_US))
        return {"retries": tuple(Retry(output, attempts, after_us, "boom") for output in self._outputs(1))}

    def _accept(self, ref: Ref) -> dict[str, Any]:
        return {"accepts": tuple(self._input() for _ in range(self.random.randint(1, 3)))}

    def _input(self) -> InputRow:
        ref, body = self.random.choice(REFS), self.random.choice(BODIES)
        timer = self.random.choice(KEYS) if self.chance(0.3) else None
        return InputRow(
            *(ref.workflow, ref.id, self.random.choice(MESSAGES), "command", "Go", 1, body, 0, b"{}"),
            timer_key=timer,
            claimed=self.chance(0.5),
        )

    def _bury(self, ref: Ref, settles: tuple[OutputKey, ...], *, alone: bool) -> dict[str, Any]:
        message, output = self.random.choice(MESSAGES), None
        if settles:
            output = settles[0]
            owner = self._tables.outbox[output].ref if output in self._tables.outbox else ref
            # A dead letter stands with the instance that sent it.
            ref, message = owner, f"{owner}/{output.version}"
        letter = DeadLetter(
            *(ref.workflow, ref.id, message, "command", "Go", 1, self.random.choice(BODIES), 0, b"{}"),
            reason="gave up",
            output=output,
        )
        return {"dead_letters": (letter,)} | (
            {"dedupe": message} if alone and output is None and self.chance(0.7) else {}
        )

    def _cancel(self, ref: Ref) -> dict[str, Any]:
        if self.chance(0.5):
            return {"cancels": self.some(KEYS)}
        return {"cancel_all": self.random.choice(("timers", "unclaimed", "forward"))}

    def _consume(self, ref: Ref) -> dict[str, Any]:
        own = list(self._tables.inputs(ref))
        if not own or self.chance(0.05):
            return {"consumes": self.random.choice([*self._tables.inbox, 10**9])}
        return {"consumes": own[0] if self.chance(0.8) else self.random.choice(own)}

    def _release(self, ref: Ref) -> dict[str, Any]:
        own = list(self._tables.inputs(ref))
        return {"releases": tuple(own[:2] if self.chance(0.7) else own[1:3])}

    def _remember(self, ref: Ref) -> dict[str, Any]:
        expires_us = self._tables.clock.now_us() + self.random.choice((0, 5, 1_000)) * SECOND_US
        return {
            "remembers": (Remembered(self.random.choice(RESULTS), "Go", 1, self.random.choice(BODIES), expires_us),)
        }

    def _discard(self, ref: Ref) -> dict[str, Any]:
        return {"discards": (self.random.choice([*self._tables.letters, 10**9]),)}

    def _handle(self, ref: Ref) -> dict[str, Any]:
        letters = [letter for letter, _ in self._tables.letters.values() if letter.output is not None]
        own = [one for one in letters if (one.workflow, one.instance) == (ref.workflow, ref.id)] or letters
        return {"handles": tuple(one.output.version for one in own[:2] if one.output is not None)}

    def _direct(self, ref: Ref) -> dict[str, Any]:
        return {"direct": True}

    def _tasks(self, ref: Ref, unit: Unit) -> TaskWork:
        asked = [version for owner, version in self._tables.tasks if owner == ref]
        answer = None
        if asked and self.chance(0.6):
            answer = TaskAnswer(self.random.choice(asked), self.random.choice(PEOPLE), self.some(ROLES), "Approve")
        opens = tuple(self._opening(event.version) for event in unit.events if self.chance(0.6))
        return TaskWork(answer, self.some(KEYS) if self.chance(0.3) else (), self.chance(0.1), opens)

    def _opening(self, version: int) -> TaskOpening:
        role = self.random.choice(ROLES) if self.chance(0.8) else None
        after_us = self.random.choice((None, 5 * SECOND_US, 9 * SECOND_US))
        return TaskOpening(
            version,
            self.random.choice(KEYS),
            "Approve",
            ("Approve",),
            role,
            self.random.choice(PEOPLE) if role is None or self.chance(0.2) else None,
            self.some(PEOPLE, 1),
            due_after_us=after_us,
            due_at_us=7 * SECOND_US if after_us is None and self.chance(0.5) else None,
        )

    # ---- people

    def hand(self) -> tuple[Ref, int, Hand]:
        """Return a change of hands of some task."""
        ref, version = self.random.choice([*self._tables.tasks, (REFS[0], 1)])
        kind = self.random.choice(("claim", "release", "delegate"))
        actor = self.random.choice(PEOPLE if kind == "claim" else (None, *PEOPLE))
        return ref, version, Hand(kind, actor, self.some(ROLES), self.random.choice(PEOPLE))

    def task_filter(self) -> TaskFilter:
        """Return a look at the tasks."""
        return TaskFilter(
            self.some(ROLES),
            self.random.choice((None, *PEOPLE)),
            self.random.choice((None, *WORKFLOWS)),
            self.random.choice((None, self._tables.clock.now_us())),
        )


def _hollow(event: EventRow) -> EventRow:
    """Return an event of a trimmed stream: of its input only the digest is kept."""
    if event.message_id is None:
        return event
    type, body = digested((event.type, event.body))
    return replace(event, type=type, body=body)

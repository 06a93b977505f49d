"""The read side of the model: what each look at the store must show."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from mainspring.port.projections import Advance, Checkpoint, Document
from mainspring.port.purges import Purgeable, Purged
from mainspring.port.records import (
    Claims,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    Loaded,
    OutputClaim,
    OutputKey,
    Ref,
    Stats,
)
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow, handed
from tests.proof.model.tables import Recorded, Tables


class Model(Tables):
    """All that a store answers beside the outcomes of a commit."""

    # ---- workers and work

    def release(self, worker: int) -> None:
        self.workers.pop(worker, None)
        for held in (*self.outbox.values(), *self.inbox.values()):
            if held.owner == worker:
                held.owner = None

    def relieve(self) -> int:
        dead = [worker for worker, (_, ends_us) in self.workers.items() if ends_us <= self.clock.now_us()]
        for worker in dead:
            self.release(worker)
        return len(dead)

    def claim(self, worker: int, destinations: tuple[str, ...], workflows: tuple[str, ...], limit: int) -> Claims:
        if worker not in self.workers:
            return Claims([], [], None)
        now_us = self.clock.now_us()
        free = {k: o for k, o in self.outbox.items() if o.owner is None and o.row.destination in destinations}
        due = [key for key, one in free.items() if one.due_us <= now_us]
        due.sort(key=lambda key: (-free[key].row.priority, free[key].due_us, key.instance, key.version))
        taken = due[:limit]
        inputs = self._claimable_inputs(worker, workflows)[:limit]
        for held in (*(self.outbox[key] for key in taken), *(self.inbox[at] for at in inputs)):
            held.owner = worker
        next_due_us = min((one.due_us for key, one in free.items() if key not in taken), default=None)
        return Claims([self.claim_of(key) for key in taken], [self.inbox[at].row for at in inputs], next_due_us)

    def _claimable_inputs(self, worker: int, workflows: tuple[str, ...]) -> list[int]:
        found: list[int] = []
        blocked: set[Ref] = set()
        for position, waiting in self.inbox.items():
            ref = Ref(waiting.row.workflow, waiting.row.instance)
            row = self.instances.get(ref)
            if waiting.owner not in (None, worker):
                blocked.add(ref)
            is_free = waiting.owner is None and ref not in blocked and not (row and row.status == "suspended")
            if is_free and ref.workflow in workflows:
                found.append(position)
        return found

    def holds(self, worker: int) -> set[OutputKey]:
        return {key for key, one in self.outbox.items() if one.owner == worker}

    def restore(self, id: int, expected_version: int | None) -> bool:
        letter, output = self.letters.get(id, (None, None))
        if letter is None or letter.output is None or output is None:
            return False
        if expected_version is not None and self.instances[output.ref].version != expected_version:
            return False
        del self.letters[id]
        self.outbox[letter.output] = Recorded(output.ref, output.row, self.clock.now_us(), None)
        return True

    # ---- looking

    def list_instances(self, where: InstanceFilter, limit: int, after: int) -> list[InstanceRow]:
        rows = sorted((row for row in self.instances.values() if row.purged_us is None), key=lambda row: row.key)
        return [row for row in rows if row.key > after and self._matches(where, row)][:limit]

    def _matches(self, where: InstanceFilter, row: InstanceRow) -> bool:
        own = self.attributes.get(Ref(row.workflow, row.id), ())
        return (
            where.workflow in (None, row.workflow)
            and where.status in (None, row.status)
            and where.state in (None, row.state)
            and row.id.startswith(where.id_prefix or "")
            and (where.error or "") in (row.error or "")
            and (where.updated_from_us or 0) <= row.updated_us
            and all(any(wanted.finds(one) for one in own) for wanted in where.attributes)
        )

    def load(self, ref: Ref) -> Loaded | None:
        row = self.instances.get(ref)
        if row is None:
            return None
        snapshot = self.snapshots.get(ref)
        after = snapshot.version if snapshot else 0
        return Loaded(row, snapshot, [event for event in self.stream(ref) if event.version > after])

    def feed(self) -> list[tuple[Ref, EventRow]]:
        return [(ref, event) for (ref, _), event in self.events.items() if self.version(ref) >= 0]

    def waiting(self, ref: Ref) -> list[InputRow]:
        return [one.row for one in self.inputs(ref).values()]

    def open_outputs(self, *, timers: bool) -> list[OutputClaim]:
        found = [self.claim_of(key) for key, one in self.outbox.items() if (one.row.kind == "timer") == timers]
        return sorted(found, key=lambda claim: (claim.due_us, claim.output.instance, claim.output.version))

    def stats(self) -> Stats:
        now_us = self.clock.now_us()
        timers = len(self.open_outputs(timers=True))
        return Stats(
            dict(Counter(row.status for row in self.instances.values() if row.purged_us is None)),
            len(self.inbox),
            len(self.outbox) - timers,
            timers,
            len(self.letters),
            min((one.due_us for one in self.outbox.values() if one.due_us <= now_us), default=None),
            len(self.workers),
        )

    # ---- tasks

    def list_tasks(self, where: TaskFilter) -> list[TaskRow]:
        found = [task for task in self.tasks.values() if task.status == "open" and _sees(where, task)]
        return sorted(found, key=self._urgency)

    def _urgency(self, task: TaskRow) -> tuple[float, int, int]:
        due_us = float("inf") if task.due_us is None else task.due_us
        return due_us, self.instances[Ref(task.workflow, task.instance)].key, task.version

    def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        task = handed(self.tasks.get((ref, version)), hand, self.clock.now_us())
        if isinstance(task, TaskRow):
            self.tasks[ref, version] = task
        return task

    def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        open = [task for task in self.list_tasks(TaskFilter()) if task.role == role and task.claimed_by is None]
        picked: list[TaskRow] = []
        for task in [task for task in open if actor not in task.excludes][:limit]:
            spot = (Ref(task.workflow, task.instance), task.version)
            self.tasks[spot] = replace(task, claimed_by=actor, claimed_us=self.clock.now_us())
            picked.append(self.tasks[spot])
        return picked

    # ---- purging

    def purgeable(self, workflow: str, before_us: int) -> list[Purgeable]:
        found: list[Purgeable] = []
        for ref, ended_us in self.ended_us.items():
            row = self.instances[ref]
            may_go = row.purged_us is not None or (row.updated_us < before_us and self._is_done(ref))
            if ref.workflow == workflow and ended_us < before_us and may_go:
                found.append(Purgeable(row.key, ref.workflow, ref.id, row.version, ended_us, row.purged_us))
        return sorted(found, key=lambda one: (one.ended_us, one.key))

    def _is_done(self, ref: Ref) -> bool:
        letters = {(letter.workflow, letter.instance) for letter, _ in self.letters.values()}
        return not (self.inputs(ref) or self.outputs(ref) or (ref.workflow, ref.id) in letters)

    def is_gone(self, one: Purgeable) -> bool:
        """Tell whether an instance was purged whole."""
        ref = Ref(one.workflow, one.id)
        return self.instances[ref].purged_us is not None and ref not in self.ended_us

    def purge(self, one: Purgeable, events: int) -> Purged:
        """Purge an instance, as far as so many events go."""
        ref, tombstones = Ref(one.workflow, one.id), 0
        if self.version(ref) == one.version and ref in self.ended_us and self._is_done(ref):
            self.instances[ref] = replace(
                self.instances[ref], state=None, error=None, context=b"{}", purged_us=self.clock.now_us()
            )
            self.snapshots.pop(ref, None)
            self.attributes.pop(ref, None)
            self.tasks = {spot: task for spot, task in self.tasks.items() if spot[0] != ref}
            tombstones = 1
        if self.version(ref) >= 0:
            return Purged(0, 0, ())
        own = [spot for spot in self.events if spot[0] == ref]
        for spot in own[:events]:
            del self.events[spot]
        if len(own) <= events:
            self.ended_us.pop(ref, None)
            return Purged(tombstones, len(own), ())
        return Purged(tombstones, events, (one.key,))

    # ---- projections

    def advance(self, move: Advance) -> bool:
        known = {generation: one for (name, generation), one in self.checkpoints.items() if name == move.name}
        if not move.fits(known):
            return False
        for generation in move.retires:
            self.checkpoints[move.name, generation] = replace(known[generation], status="retired")
        spot = (move.name, move.generation)
        old = known.get(move.generation)
        version = move.version if old is None else old.version
        status = move.status or (old.status if old else "live")
        now_us = self.clock.now_us()
        self.checkpoints[spot] = Checkpoint(*spot, version, status, move.position, now_us, move.error)
        kept = self.documents.setdefault(spot, {})
        kept.update({document.key: document for document in move.documents})
        self.documents[spot] = {key: one for key, one in sorted(kept.items()) if one.body is not None}
        return True

    def live_documents(self, name: str) -> list[Document]:
        live = [spot for spot, one in self.checkpoints.items() if spot[0] == name and one.status == "live"]
        return list(self.documents.get(live[0], {}).values()) if live else []

    def clear(self, name: str, generation: int, limit: int) -> int:
        spot = (name, generation)
        if spot not in self.checkpoints or self.checkpoints[spot].status != "retired":
            return 0
        kept = self.documents.get(spot, {})
        cleared = min(limit, len(kept))
        if cleared < limit:
            self.documents.pop(spot, None)
            del self.checkpoints[spot]
        else:
            # Nobody reads a retired generation: which of them went first does not show.
            self.documents[spot] = dict(list(kept.items())[cleared:])
        return cleared


def _sees(where: TaskFilter, task: TaskRow) -> bool:
    if where.workflow not in (None, task.workflow):
        return False
    if where.due_before_us is not None and (task.due_us is None or task.due_us >= where.due_before_us):
        return False
    if where.person is not None and (where.person in task.excludes or task.claimed_by not in (None, where.person)):
        return False
    asked = where.person is not None and where.person in (task.person, task.claimed_by)
    return asked or task.role in where.roles or (where.person is None and not where.roles)

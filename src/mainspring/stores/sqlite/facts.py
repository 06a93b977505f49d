"""The check phase: what the database says about a run of units, asked in a few statements.

Each statement takes a list and returns misfits or hits only. When all goes well nothing comes back, and that matters:
every row that does is one more turn at the interpreter lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeAlias

import apsw

from mainspring.port.records import Status, Unit
from mainspring.port.tasks import TaskWork
from mainspring.stores.rows import output_checksum
from mainspring.stores.sqlite import tasks
from mainspring.stores.sqlite.sql import packed, rows

Name: TypeAlias = tuple[str, str]
Spot: TypeAlias = tuple[int, int]
Owned: TypeAlias = tuple[int, Unit]


class Everything:
    """Holds whatever one asks for.

    >>> "Timeout" in Everything()
    True
    """

    def __contains__(self, item: object) -> bool:
        return True


class Known:
    """What is known of an instance: as the database has it, and then as the units so far have changed it.

    There is one for every instance of a batch, so what is rarely changed stays in the class until it is.

    >>> Known("W", "i").version
    0
    """

    status: Status = "running"
    state: str | None = None
    error: str | None = None
    definition_version: int = 1
    context: bytes = b"{}"
    context_version: int | None = None
    # What the units of this segment did to it.
    moved: bool = False
    accepted: bool = False
    consumed: bool = False
    released: bool = False
    cancelled: bool = False
    holders: frozenset[int | None] = frozenset()
    asked: bool = False
    cancelled_timers: frozenset[str] | Everything = frozenset()
    since: int = 0

    def __init__(self, workflow: str, id: str, key: int = 0, version: int = 0) -> None:
        self.workflow = workflow
        self.id = id
        self.key = key
        self.version = version


class Facts:
    """Answers to all questions that a run of units raises, read in one open transaction.

    `known` says of each unit what is known of its instance; `instances` has them by name, and those of `accepts` too.
    """

    def __init__(self, connection: apsw.Connection, units: Sequence[Owned]) -> None:
        self._connection = connection
        self.instances: dict[Name, Known] = {}
        self.known: list[Known] = []
        self._keyed: list[tuple[int, int, str, str]] = []
        self._named: list[Name] = []
        self._inputs: list[tuple[Name, str]] = []
        self._owned: list[tuple[int, int, int]] = []
        self._takes: list[tuple[int, str, str]] = []
        self._direct: list[Name] = []
        self._claiming: set[tuple[str, str, int]] = set()
        self._read: list[Spot] = []
        self._letters: list[tuple[str, str, str]] = []
        self._answered: list[tuple[str, str, int]] = []
        self._barred: set[Name] = set()
        self._cancels = False
        self._collect(units)
        self.workers = {worker for worker, _ in units}
        self.not_owned: set[tuple[int, int, int]] = set()
        self.taken: dict[tuple[Name, str], tuple[str | None, bytes | None]]
        self._ask_misfits()
        self._ask_named()
        spots = [spot[:2] for spot in self._owned] if self._cancels else []
        self.timers = {(i, v) for i, v, *_, key in self._ask("output_rows", spots) if key is not None}
        self.outputs: dict[Spot, Sequence[Any]] = {}
        self.damaged: set[Spot] = set()
        for i, v, checksum, due_us, attempts, *row in self._ask("output_rows", self._read):
            self.outputs[i, v] = row
            kind, destination, priority, key = row
            if checksum not in (None, output_checksum(i, v, kind, destination, due_us, priority, key, attempts)):
                self.damaged.add((i, v))
        self.letters: dict[tuple[Name, str], list[tuple[int, tuple[str, bytes]]]] = {}
        for workflow, instance, message_id, id, *message in self._ask("dead_messages", self._letters):
            self.letters.setdefault(((workflow, instance), message_id), []).append((id, (message[0], message[1])))
        self.tasks = tasks.found(connection, self._answered) if self._answered else {}
        self.open_tasks = tasks.open_of(connection, sorted(self._barred)) if self._barred else {}
        self._ask_inbox()

    def _collect(self, units: Sequence[Owned]) -> None:
        """Gather all questions. Runs once for every unit there ever is: rare things are looked for together."""
        instances, known_ones, owned, direct = self.instances, self.known, self._owned, self._direct
        for worker, unit in units:
            name = (unit.workflow, unit.instance)
            known = instances.get(name)
            if known is None:
                known = instances[name] = self._find(name, unit)
            known_ones.append(known)
            if unit.dedupe is not None:
                self._inputs.append((name, unit.dedupe))
            if unit.direct or unit.requires is not None:
                direct.append(name)
            for output in unit.settles:
                owned.append((output.instance, output.version, worker))
            if unit.accepts or unit.retries or unit.cancels or unit.releases or unit.consumes is not None:
                self._collect_rare(worker, unit, name)
            if unit.dead_letters or unit.cancel_all:
                self._collect_last(unit)
            if unit.tasks is not None:
                self._collect_tasks(unit.tasks, name)

    def _collect_tasks(self, work: TaskWork, name: Name) -> None:
        if work.answer is not None:
            self._answered.append((*name, work.answer.version))
        if work.bars:
            self._barred.add(name)

    def _find(self, name: Name, unit: Unit) -> Known:
        if unit.key and unit.expected_version is not None:
            self._keyed.append((unit.key, unit.expected_version, *name))
        else:
            self._named.append(name)
        return Known(*name, unit.key or 0, unit.expected_version or 0)

    def _collect_rare(self, worker: int, unit: Unit, name: Name) -> None:
        if (takes := unit.takes) is not None:
            self._takes.append((takes, *name))
        if unit.cancels:
            self._cancels = True
        for retry in unit.retries:
            self._owned.append((retry.output.instance, retry.output.version, worker))
            self._read.append((retry.output.instance, retry.output.version))
        for row in unit.accepts:
            target = (row.workflow, row.instance)
            if target not in self.instances:
                self.instances[target] = Known(*target)
                self._named.append(target)
            self._inputs.append((target, row.message_id))
            if row.claimed:
                self._claiming.add((*target, worker))

    def _collect_last(self, unit: Unit) -> None:
        if unit.cancel_all:
            self._cancels = True
        for letter in unit.dead_letters:
            if letter.output is not None:
                self._read.append((letter.output.instance, letter.output.version))
            elif letter.message_id == unit.dedupe:
                self._letters.append((letter.workflow, letter.instance, letter.message_id))

    def _ask(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return rows(self._connection, query, packed(values)) if values else []

    def _ask_misfits(self) -> None:
        """Ask at once what every batch asks. An instance that is not as its unit says is looked for by its name."""
        names = {key: (workflow, id) for key, _, workflow, id in self._keyed}
        taken = [(key, id) for name, id in self._inputs if names.get(key := self.instances[name].key) == name]
        lists = (sorted(self.workers), self._keyed, self._owned, taken)
        alive = len(self.workers)
        wrong: set[int] = set()
        found: list[Sequence[Any]] = []
        for which, *row in rows(self._connection, "misfits", *[packed(values) if values else None for values in lists]):
            match which:
                case 0:
                    alive, self.inbox_has_rows, self.inbox_is_parked, _ = row
                case 1:
                    wrong.add(row[0])
                case 2:
                    self.not_owned.add((row[0], row[1], row[2]))
                case _:
                    found.append(row)
        if alive < len(self.workers):
            self.workers = {key for (key,) in self._ask("registered_workers", sorted(self.workers))}
        if wrong:
            self._named += [(workflow, id) for key, _, workflow, id in self._keyed if key in wrong]
        self.taken = {(names[key], id): (type, body) for key, id, type, body in found if key not in wrong}

    def _ask_named(self) -> None:
        """Find the instances that are known by name only, and which of their inputs are in their streams already.

        A tombstone knows none, though events of it may be left.
        """
        if not self._named:
            return
        names: dict[int, Name] = {}
        for name in self._named:
            known = self.instances[name]
            known.key = known.version = 0
        for workflow, id, key, version in self._ask("instances_by_name", self._named):
            known = self.instances[workflow, id]
            known.key, known.version = key, version
            if version >= 0:
                names[key] = (workflow, id)
        asked = [(key, id) for name, id in self._inputs if names.get(key := self.instances[name].key) == name]
        for key, id, type, body in self._ask("taken_messages", asked):
            self.taken[names[key], id] = (type, body)

    def _ask_inbox(self) -> None:
        self.waiting: dict[tuple[Name, str], tuple[int, str | None, str, bytes]] = {}
        self.not_waiting: set[tuple[int, str, str]] = set(self._takes)
        self.queued: set[Name] = set()
        # The inputs to be taken, in their order, and the first of others that wait before the last of them.
        self.turns: dict[Name, deque[int]] = {}
        self.left: dict[Name, int] = {}
        self.others: set[tuple[str, str, int]] = set()
        if not self.inbox_has_rows:
            return
        asked = [(*name, message_id) for name, message_id in self._inputs]
        for workflow, instance, message_id, *row in self._ask("waiting_messages", asked):
            self.waiting[(workflow, instance), message_id] = (row[0], row[1], row[2], row[3])
        self.not_waiting = set(self._ask("not_waiting", self._takes))
        for position, workflow, id in sorted(set(self._takes) - self.not_waiting):
            self.turns.setdefault((workflow, id), deque()).append(position)
        self.left = {(workflow, id): position for workflow, id, position in self._ask("left_behind", self._takes)}
        self.queued = {(workflow, id) for workflow, id in self._ask("with_waiting_inputs", self._direct)}
        claiming = self._ask("with_inputs_of_others", sorted(self._claiming))
        self.others = {(workflow, id, worker) for workflow, id, worker in claiming}

"""What the database says about a batch, asked in a few statements.

Each statement takes a list and returns misfits or hits only. When all goes well nothing comes back, and that matters:
every row that does is one more turn at the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar

import apsw

from mainspring.port.records import Unit
from mainspring.stores.commit.facts import Facts, Known, OutputFact
from mainspring.stores.commit.questions import Questions
from mainspring.stores.commit.rows import output_checksum
from mainspring.stores.sql.dialect import packed
from mainspring.stores.sql.tasks import read_tasks
from mainspring.stores.sqlite.dialect import DIALECT
from mainspring.stores.sqlite.statements import rows, run_on, scalar

T = TypeVar("T", bound=tuple[Any, ...])


class SqliteFacts(Facts):
    """The answers, read in one open transaction."""

    def __init__(self, connection: apsw.Connection, questions: Questions[Known]) -> None:
        super().__init__()
        self._connection = connection
        self._questions = questions
        self.inbox_has_rows = self.inbox_is_parked = False
        named = self._ask_misfits()
        if named:
            self._ask_named(named)
        self._ask_outputs()
        for workflow, instance, message_id, id, type, body in self._ask("dead_messages", questions.letters):
            self.letters.setdefault((workflow, instance, message_id), []).append((id, (type, body)))
        if questions.asked:
            asked = [(known.key, version) for known, version in questions.asked]
            run_on(connection, read_tasks(DIALECT, self.tasks, asked))
        if self.inbox_has_rows:
            self._ask_inbox()
        if questions.begins:
            self.keys = count(1 + scalar(connection, "last_key"))
        if questions.accepts:
            self.positions = count(1 + scalar(connection, "last_number", "inbox"))

    def _ask(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return rows(self._connection, query, packed(values)) if values else []

    def _ask_misfits(self) -> list[Known]:
        """Ask at once what every batch asks. Return the instances that are to be looked for by their names.

        Where the first unit of an instance says where that stands, it is believed unless the database says otherwise.
        """
        q = self._questions
        keyed: dict[int, Known] = {}
        for (_, unit), known in zip(q.units, q.known, strict=True):
            if unit.key and unit.expected_version is not None and not known.key:
                known.key, known.version = unit.key, unit.expected_version
                keyed.setdefault(unit.key, known)
        said = [(key, known.version, known.workflow, known.id) for key, known in keyed.items()]
        taken = [(known.key, id) for known, id in q.inputs if known.key and keyed[known.key] is known]
        workers = {worker for worker, _ in q.units}
        lists = (sorted(workers), said, list(q.outputs), taken)
        alive = len(workers)
        wrong: set[int] = set()
        found: list[Sequence[Any]] = []
        for which, *row in rows(self._connection, "misfits", *[packed(values) if values else None for values in lists]):
            match which:
                case 0:
                    alive, self.inbox_has_rows, self.inbox_is_parked, _ = row
                case 1:
                    wrong.add(row[0])
                case 2:
                    self.outputs[row[0], row[1]] = OutputFact(row[2], None, row[3], None, None)
                case _:
                    found.append(row)
        self.workers = workers
        if alive < len(workers):
            self.workers = {key for (key,) in self._ask("registered_workers", sorted(workers))}
        for key, id, type, body in found:
            if key not in wrong:
                self.taken[keyed[key].name, id] = (type, body)
        known_ones = q.instances.values()
        return [known for known in known_ones if not known.key or known.key in wrong or keyed[known.key] is not known]

    def _ask_named(self, named: Sequence[Known]) -> None:
        """Find the instances that are known by name only, and which of their inputs are in their streams already.

        A tombstone knows none, though events of it may be left.
        """
        instances = self._questions.instances
        for known in named:
            known.key = known.version = 0
        begun: dict[int, Known] = {}
        for workflow, id, key, version in self._ask("instances_by_name", [known.name for known in named]):
            known = instances[workflow, id]
            known.key, known.version = key, version
            if version >= 0:
                begun[key] = known
        asked = [(known.key, id) for known, id in self._questions.inputs if begun.get(known.key) is known]
        for key, id, type, body in self._ask("taken_messages", asked):
            self.taken[begun[key].name, id] = (type, body)

    def _ask_outputs(self) -> None:
        wanted = [spot[:2] for spot, is_wanted in self._questions.outputs.items() if is_wanted]
        for i, v, owner, checksum, due_us, attempts, kind, destination, priority, key in self._ask(
            "output_rows", wanted
        ):
            own = output_checksum(i, v, kind, destination, due_us, priority, key, attempts)
            damaged = checksum not in (None, own)
            self.outputs[i, v] = OutputFact(owner, priority, kind, destination, key, damaged=damaged)

    def _ask_inbox(self) -> None:
        q = self._questions
        asked = [(*known.name, message_id) for known, message_id in q.inputs]
        for workflow, instance, message_id, position, timer_key, type, body in self._ask("waiting_messages", asked):
            self.waiting[(workflow, instance), message_id] = (position, timer_key, (type, body))
        consumed = [(position, *known.name) for position, known in q.consumed]
        for position, workflow, instance, timer_key, owner in self._ask("inputs_at", consumed):
            spot = (position, (workflow, instance))
            self.consumable[spot], self.holders[spot] = timer_key, owner
        self.set_turns()
        for workflow, instance, timer_key, first in self._ask("left_behind", consumed):
            self.left.setdefault((workflow, instance), []).append((timer_key, first))
        # Only where the batch itself takes inputs away does it matter how many wait, and which timers are among them.
        changed = {known.name for (_, unit), known in zip(q.units, q.known, strict=True) if _takes_away(unit)}
        plain, counted = _parted([known.name for known in q.direct.values()], lambda name: name in changed)
        for workflow, instance in self._ask("with_waiting_inputs", plain):
            self.queued[workflow, instance] = [(None, 1)]
        for workflow, instance, timer_key, waiting in self._ask("waiting_inputs", counted):
            self.queued.setdefault((workflow, instance), []).append((timer_key, waiting))
        claiming = [(*known.name, worker) for (_, worker), known in q.claiming.items()]
        plain, counted = _parted(claiming, lambda claim: claim[:2] in changed)
        for workflow, instance, worker in self._ask("with_inputs_of_others", plain):
            self.others[(workflow, instance), worker] = [(None, 1)]
        for workflow, instance, worker, timer_key, waiting in self._ask("inputs_of_others", counted):
            self.others.setdefault(((workflow, instance), worker), []).append((timer_key, waiting))


def _takes_away(unit: Unit) -> bool:
    return bool(unit.consumes is not None or unit.releases or unit.cancels or unit.cancel_all)


def _parted(values: Sequence[T], condition: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Return those for which a condition does not hold, and those for which it does.

    >>> _parted([(1,), (2,), (3,)], lambda n: n[0] > 1)
    ([(1,)], [(2,), (3,)])
    """
    return [value for value in values if not condition(value)], [value for value in values if condition(value)]

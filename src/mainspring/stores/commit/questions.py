"""What a batch must know of the store, gathered in one walk over its units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from mainspring.port.records import Unit
from mainspring.stores.commit.facts import Known, Name, Owned

K = TypeVar("K", bound=Known)


class Questions(Generic[K]):
    """All that is to be asked. `known` has what is known of each unit's instance, in the order of the units.

    >>> Questions([(1, Unit("W", "i", expected_version=0))], Known).begins
    True
    """

    def __init__(self, units: Sequence[Owned], make: Callable[[str, str, Name], K]) -> None:
        self._make = make
        self.instances: dict[Name, K] = {}
        self.known: list[K] = []
        self.units = units
        self.inputs: list[tuple[K, str]] = []
        """Message ids that may be there already, and whose."""
        self.consumed: list[tuple[int, K]] = []
        """Inputs to be taken or released, by position."""
        self.direct: dict[Any, K] = {}
        """Instances of which it matters whether inputs wait for them."""
        self.claiming: dict[tuple[Any, int], K] = {}
        """Instances for which a worker wants to hold new inputs."""
        self.outputs: dict[tuple[int, int, int], bool] = {}
        """Outputs, with the worker that should hold them, and whether their rows are wanted."""
        self.letters: list[tuple[str, str, str]] = []
        self.asked: list[tuple[K, int]] = []
        """Instances whose tasks matter, each with the version of one that may be closed; 0 for none."""
        self.accepts = 0
        self._cancels = False
        self._beginning: set[Any] = set()
        self._collect()

    @property
    def appends(self) -> bool:
        """Whether there are events among what is to be written."""
        return any(unit.events for _, unit in self.units)

    @property
    def begins(self) -> bool:
        """Whether an instance may begin."""
        return bool(self._beginning)

    @property
    def new_keys(self) -> int:
        """How many instances may begin. To be asked when it is known which there are."""
        return sum(not known.key and known.name in self._beginning for known in self.instances.values())

    def _collect(self) -> None:
        """Gather. Runs once for every unit there ever is: rare things are looked for together."""
        instances, known_ones, outputs, direct = self.instances, self.known, self.outputs, self.direct
        for worker, unit in self.units:
            name = (unit.workflow, unit.instance)
            known = instances.get(name)
            if known is None:
                known = instances[name] = self._make(unit.workflow, unit.instance, name)
            known_ones.append(known)
            if unit.dedupe is not None:
                self.inputs.append((known, unit.dedupe))
            if unit.direct or unit.requires is not None:
                direct[known.name] = known
            if unit.expected_version == 0:
                self._beginning.add(known.name)
            for output in unit.settles:
                outputs.setdefault((output.instance, output.version, worker), False)
            if unit.accepts or unit.retries or unit.cancels or unit.releases or unit.consumes is not None:
                self._collect_rare(worker, unit, known)
            if unit.dead_letters or unit.cancel_all:
                self._collect_last(worker, unit)
            if unit.tasks is not None:
                answer, reopens = unit.tasks.answer, unit.tasks.reopens
                self.asked.append((known, answer.version if answer is not None else reopens or 0))
        if self._cancels:
            # Then it depends on an output's kind and key what becomes of it.
            self.outputs = dict.fromkeys(outputs, True)

    def _collect_rare(self, worker: int, unit: Unit, known: K) -> None:
        if unit.consumes is not None:
            self.consumed.append((unit.consumes, known))
        self.consumed += [(position, known) for position in unit.releases]
        if unit.cancels:
            self._cancels = True
        for retry in unit.retries:
            self.outputs[retry.output.instance, retry.output.version, worker] = True
        for row in unit.accepts:
            target = (row.workflow, row.instance)
            receiver = self.instances.get(target)
            if receiver is None:
                receiver = self.instances[target] = self._make(row.workflow, row.instance, target)
            self.inputs.append((receiver, row.message_id))
            self.accepts += 1
            if row.claimed:
                self.claiming[receiver.name, worker] = receiver

    def _collect_last(self, worker: int, unit: Unit) -> None:
        if unit.cancel_all:
            self._cancels = True
        for letter in unit.dead_letters:
            if letter.output is None and letter.message_id == unit.dedupe:
                self.letters.append((letter.workflow, letter.instance, letter.message_id))
            elif letter.output is not None and letter.output in unit.settles:
                self.outputs[letter.output.instance, letter.output.version, worker] = True

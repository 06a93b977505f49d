"""What if this code had run? The report on many streams, compared with the code of today, by kind of difference."""

from __future__ import annotations

from operator import add
from typing import Final

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from mainspring.analysis.what_if.comparison import Comparison
from mainspring.analysis.what_if.contrast import Compared, Found, Key, What
from mainspring.port.records import ENDED, InstanceRow

KINDS: Final = 500
"""How many kinds of difference, and of reasons why something was not checked, are distinguished."""
EXAMPLES: Final = 1
OTHERS: Final = f"others, behind the first {KINDS} kinds of difference"


class Example(Struct, frozen=True):
    """One story of a difference: the instance, the position of the input, and lines as of a diff.

    A `-` line was recorded, a `+` line is what today's code does, and `~` differs in the fields that it names.
    """

    instance: str
    status: str
    position: int
    lines: tuple[str, ...]


class Difference(Struct, frozen=True):
    """A kind of difference, in how many instances and steps it was found, and stories of it.

    `kind` says what it is: another `decision`; an `error` where there was none; another `state`; a message or event
    that is `unreadable` now; an `evolve` that fails.
    """

    workflow: str
    workflow_version: int
    kind: What
    what: str
    instances: int
    in_flight: int
    steps: int
    examples: tuple[Example, ...] = ()


class Unchecked(Struct, frozen=True):
    """Instances that could not be checked, or not to their end, and why; with one of them."""

    why: str
    instances: int
    in_flight: int
    example: str


class NewFields(Struct, frozen=True):
    """Fields of a state that only today's code has, with defaults: compared with nothing, and no difference."""

    workflow: str
    workflow_version: int
    state: str
    fields: tuple[str, ...]


class Report(Struct, frozen=True):
    """What was found. `differing` and `differing_in_flight` count instances in which anything differs.

    In flight is what has not ended: running, suspended or compensating. `against` names the old code whose states were
    compared, if there was any; without, a state is compared by its name, and the whole of it where a snapshot has it.
    `new_fields` are shown and count as no difference.

    >>> Report().safe
    True
    """

    instances: int = 0
    in_flight: int = 0
    events: int = 0
    compared: Compared = field(default_factory=Compared)
    differing: int = 0
    differing_in_flight: int = 0
    differences: tuple[Difference, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    against: str | None = None
    new_fields: tuple[NewFields, ...] = ()

    @property
    def safe(self) -> bool:
        """Whether no difference was found in what was compared."""
        return not self.differing

    @property
    def unchecked_in_flight(self) -> int:
        """How many in flight could not be checked, or not to their end."""
        return sum(each.in_flight for each in self.unchecked)


class Tally:
    """Adds up what was found, in whatever order it comes."""

    def __init__(self, examples: int = EXAMPLES) -> None:
        self._examples = examples
        self._report = Report()
        self._differences: dict[tuple[str, int, What, str], Difference] = {}
        self._unchecked: dict[str, Unchecked] = {}
        self._new_fields: dict[tuple[str, int, str], dict[str, None]] = {}

    def told(self, row: InstanceRow, version: int) -> frozenset[Key]:
        """Return the kinds of which there are stories enough: one in flight tells more than one that has ended."""
        if not self._differences:
            return frozenset()
        in_flight = bool(_in_flight(row))
        return frozenset(
            (kind, what)
            for (name, number, kind, what), found in self._differences.items()
            if (name, number) == (row.workflow, version)
            and sum(not in_flight or each.status not in ENDED for each in found.examples) >= self._examples
        )

    def walked(self, row: InstanceRow, version: int, walk: Comparison) -> None:
        """Add what a walk found. `version` is that of the definition which it was held against."""
        in_flight = _in_flight(row)
        compared, differs = self._report.compared, bool(walk.found)
        self._report = replace(
            self._report,
            instances=self._report.instances + 1,
            in_flight=self._report.in_flight + in_flight,
            events=self._report.events + walk.events,
            compared=_sum(compared, walk.compared),
            differing=self._report.differing + differs,
            differing_in_flight=self._report.differing_in_flight + (in_flight if differs else 0),
        )
        for (kind, what), found in walk.found.items():
            self._add(_difference(row, version, kind, what, found))
        for state, fields in walk.new_fields.items():
            self._add_new_fields(NewFields(row.workflow, version, state, tuple(fields)))
        why = walk.gone or walk.uncompared
        if why is not None:
            self._add_unchecked(Unchecked(why, 1, in_flight, f"{row.workflow}/{row.id}"))

    def unchecked(self, row: InstanceRow, why: str) -> None:
        """Add an instance that could not be checked at all."""
        in_flight = _in_flight(row)
        self._report = replace(
            self._report, instances=self._report.instances + 1, in_flight=self._report.in_flight + in_flight
        )
        self._add_unchecked(Unchecked(why, 1, in_flight, f"{row.workflow}/{row.id}"))

    def add(self, other: Report) -> None:
        """Add what was found elsewhere, in other instances."""
        mine = self._report
        self._report = replace(
            mine,
            instances=mine.instances + other.instances,
            in_flight=mine.in_flight + other.in_flight,
            events=mine.events + other.events,
            compared=_sum(mine.compared, other.compared),
            differing=mine.differing + other.differing,
            differing_in_flight=mine.differing_in_flight + other.differing_in_flight,
        )
        for difference in other.differences:
            self._add(difference)
        for unchecked in other.unchecked:
            self._add_unchecked(unchecked)
        for new in other.new_fields:
            self._add_new_fields(new)

    def report(self) -> Report:
        """Return all of it; what concerns most instances in flight first."""
        return replace(
            self._report,
            differences=tuple(sorted(self._differences.values(), key=_weight)),
            unchecked=tuple(sorted(self._unchecked.values(), key=lambda each: (-each.instances, each.why))),
            new_fields=tuple(NewFields(*key, tuple(fields)) for key, fields in sorted(self._new_fields.items())),
        )

    def _add(self, new: Difference) -> None:
        key = (new.workflow, new.workflow_version, new.kind, new.what)
        if key not in self._differences and len(self._differences) >= KINDS:
            key = (new.workflow, new.workflow_version, new.kind, OTHERS)
            new = replace(new, what=OTHERS)
        known = self._differences.get(key)
        examples = new.examples if known is None else known.examples + new.examples
        self._differences[key] = replace(
            new,
            instances=new.instances + (known.instances if known else 0),
            in_flight=new.in_flight + (known.in_flight if known else 0),
            steps=new.steps + (known.steps if known else 0),
            examples=tuple(sorted(examples, key=_telling)[: self._examples]),
        )

    def _add_new_fields(self, new: NewFields) -> None:
        known = self._new_fields.setdefault((new.workflow, new.workflow_version, new.state), {})
        known.update(dict.fromkeys(new.fields))

    def _add_unchecked(self, new: Unchecked) -> None:
        why = new.why if new.why in self._unchecked or len(self._unchecked) < KINDS else OTHERS
        known = self._unchecked.get(why)
        if known is None:
            self._unchecked[why] = replace(new, why=why)
        else:
            instances, in_flight = known.instances + new.instances, known.in_flight + new.in_flight
            self._unchecked[why] = replace(known, instances=instances, in_flight=in_flight)


def _difference(row: InstanceRow, version: int, kind: What, what: str, found: Found) -> Difference:
    example = Example(f"{row.workflow}/{row.id}", row.status, found.versions[0], found.lines)
    examples = (example,) if found.lines else ()
    return Difference(row.workflow, version, kind, what, 1, _in_flight(row), found.steps, examples)


def _weight(each: Difference) -> tuple[int, int, str, int, str]:
    return (-each.in_flight, -each.instances, each.workflow, each.workflow_version, each.what)


def _telling(example: Example) -> tuple[bool, str, int]:
    """In flight tells more than ended; else any order will do that is always the same."""
    return (example.status in ENDED, example.instance, example.position)


def _in_flight(row: InstanceRow) -> int:
    return int(row.status not in ENDED)


def _sum(one: Compared, other: Compared) -> Compared:
    return Compared(*map(add, astuple(one), astuple(other)))

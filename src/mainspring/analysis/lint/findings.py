"""Findings, and the report that holds them."""

from __future__ import annotations

from msgspec import Struct

from mainspring.analysis.lint.rules import RULES, Level
from mainspring.analysis.model import Place


class Finding(Struct, frozen=True, order=True):
    """Something that lint found. `about` names what it is about: a message, a state. `fix` says what to do.

    `witness` are the inputs by which an instance comes there, as few as possible; () where none are known, and None
    where it is about code and not about a state.

    >>> found = Finding(Place("shop.py", 12), "MS202", "Orders", ("Paid",), "Paid is a dead end", "Complete.")
    >>> found.name, found.level
    ('dead-end', 'error')
    """

    place: Place
    code: str
    workflow: str
    about: tuple[str, ...]
    what: str
    fix: str
    witness: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """The name of its rule."""
        return RULES[self.code].name

    @property
    def level(self) -> Level:
        """How bad it is."""
        return RULES[self.code].level

    def __str__(self) -> str:
        return f"{self.place}: {self.code} {self.name}: {self.what}. {self.fix}"


class Intended(Struct, frozen=True):
    """A finding that a comment says is intended, and why.

    >>> Intended(Finding(Place("shop.py", 12), "MS202", "Orders", (), "", ""), "the archive").reason
    'the archive'
    """

    finding: Finding
    reason: str


class Report(Struct, frozen=True):
    """What lint found in an app.

    >>> Report(("Orders",), (), ()).fails(strict=True)
    False
    """

    workflows: tuple[str, ...]
    findings: tuple[Finding, ...]
    intended: tuple[Intended, ...]

    def fails(self, *, strict: bool) -> bool:
        """Tell whether something is wrong; a note is only where lint is strict."""
        return any(strict or finding.level != "note" for finding in self.findings)


def finding(
    code: str,
    workflow: str,
    place: Place,
    what: str,
    *about: str,
    fix: str = "",
    witness: tuple[str, ...] | None = None,
) -> Finding:
    """Return a finding of a rule, with the rule's own advice unless another is given."""
    return Finding(place, code, workflow, about, what, fix or RULES[code].fix, witness)

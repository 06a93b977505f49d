"""The rules of lint: what each looks for, why that matters, and what to do about it.

Findings, and the report that holds them.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import asdict

from mainspring.analysis.reading.model import Place

Level: TypeAlias = Literal["error", "warning", "note"]


class Rule(Struct, frozen=True):
    """A rule. An error stops instances or loses something; a warning is likely a mistake; a note is good to know.

    >>> RULES["MS101"].name
    'unhandled-message'
    """

    code: str
    name: str
    level: Level
    why: str
    fix: str


_ALL: Final = (
    Rule(
        "MS101",
        "unhandled-message",
        "error",
        "A message can come in a state for which decide has no case. The instance is suspended until an operator acts.",
        'Add a case, `return []` if it means nothing there; or set unknown_transition = "ignore".',
    ),
    Rule(
        "MS102",
        "second-beginning",
        "warning",
        "A client that sends the beginning twice, under two ids, suspends the instance that the first one began.",
        'Add a case, or set again = "refuse": then the second becomes a dead letter, and the instance goes on.',
    ),
    Rule(
        "MS103",
        "unused-input",
        "warning",
        "No state has a case for an input type: sending one suspends the instance.",
        "Add a case, or take the type out of the workflow's inputs.",
    ),
    Rule(
        "MS104",
        "answer-from-outside",
        "note",
        "An answer to a task may come as a plain message too: any sender may decide, whatever the task says of "
        "roles and of people who may not.",
        "Take it out of from_outside, or let decide look at Envelope.task and Envelope.actor.",
    ),
    Rule(
        "MS201",
        "unreachable-state",
        "warning",
        "Nothing leads to a state: evolve never returns it, or only from states that nothing leads to.",
        "Return it from evolve, or remove it.",
    ),
    Rule(
        "MS202",
        "dead-end",
        "error",
        "An instance can come into a state that nothing leads out of, and has not ended: it stays there for ever.",
        "Decide Complete() or Fail(…) on the way in, or add the messages that lead on.",
    ),
    Rule(
        "MS203",
        "waits-without-timeout",
        "warning",
        "An instance waits for what may never come: no timer is set, no task is due, no handler is at work.",
        "Schedule a timer on the way in, and say in decide what it means that it fires; or set `deadline = …`.",
    ),
    Rule(
        "MS204",
        "dead-case",
        "warning",
        "A case can never match: one above takes all that it could take, or no such message comes in such a state.",
        "Remove it, or move it up.",
    ),
    Rule(
        "MS301",
        "result-not-taken",
        "warning",
        "What a handler returns, or another workflow replies, is no input of the workflow that asked: it is kept "
        "without a notice.",
        "Add the type to the workflow's inputs with a case for it, or let the handler return nothing.",
    ),
    Rule(
        "MS302",
        "output-not-handled",
        "error",
        "A message is sent that no handler and no workflow of the app takes: the app does not start, or it waits in "
        "the outbox for ever.",
        "Register a handler, or name the type in app.external(…) if it is carried out elsewhere.",
    ),
    Rule(
        "MS303",
        "unused-output",
        "warning",
        "No decision carries an output type that the workflow declares.",
        "Take the type out of the workflow's outputs.",
    ),
    Rule(
        "MS304",
        "no-reply",
        "warning",
        "A message is replied to, but not on every way: on this one, the sender waits until their time is up.",
        "Reply here too.",
    ),
    Rule(
        "MS305",
        "timer-left",
        "note",
        "A timer is still set in a state that has no case for it. It fires, is recorded, and means nothing.",
        "Cancel it on the way in with CancelSchedule(…).",
    ),
    Rule(
        "MS401",
        "impure",
        "error",
        "decide and evolve must depend on their arguments only: a replay has to find the same again.",
        "Take it from the message, or let a handler do it.",
    ),
    Rule(
        "MS402",
        "endless-await",
        "error",
        "A flow awaits what nothing recorded can end: its instance is suspended there.",
        "Await a step, receive(…), ask(…), a child, asyncio.sleep, or a task that awaits one of these.",
    ),
    Rule(
        "MS901",
        "not-read",
        "note",
        "A place could not be read without running it, so findings may be missing.",
        "Write it with match, isinstance and plain returns if lint is to see through it.",
    ),
    Rule(
        "MS902",
        "unused-intended",
        "warning",
        "A comment says that a finding is intended, and there is no such finding, or no such rule.",
        "Remove the comment, or correct it.",
    ),
)

RULES: Final = {rule.code: rule for rule in _ALL}
"""All rules, by their codes."""

BY_NAME: Final = {rule.name: rule for rule in _ALL}
"""All rules, by their names."""


class FindingDocument(Struct, frozen=True):
    """Something that lint found, as the command line prints it and HTTP sends it."""

    level: Level
    code: Annotated[str, Meta(examples=["MS202"])]
    rule: Annotated[str, Meta(examples=["dead-end"])]
    workflow: str
    about: tuple[str, ...]
    file: str
    line: int
    what: str
    fix: str
    witness: Annotated[tuple[str, ...] | None, Meta(description="The inputs that lead there, as few as possible.")]


class IntendedFinding(FindingDocument, frozen=True):
    """A finding that a comment says is intended, and why."""

    reason: str


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

    def document(self, file: str) -> FindingDocument:
        """Return it for programs, with its file as they know it."""
        about = (self.workflow, self.about, file, self.place.line, self.what, self.fix, self.witness)
        return FindingDocument(self.level, self.code, self.name, *about)


class Intended(Struct, frozen=True):
    """A finding that a comment says is intended, and why."""

    finding: Finding
    reason: str

    def document(self, file: str) -> IntendedFinding:
        """Return it for programs."""
        return IntendedFinding(**asdict(self.finding.document(file)), reason=self.reason)


class Report(Struct, frozen=True):
    """What lint found in an app.

    >>> Report(("Orders",), (), ()).fails(strict=True)
    False
    """

    workflows: tuple[str, ...]
    findings: tuple[Finding, ...]
    intended: tuple[Intended, ...]

    def fails(self, *, strict: bool) -> bool:
        """Return True if something is wrong; a note is only where lint is strict."""
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

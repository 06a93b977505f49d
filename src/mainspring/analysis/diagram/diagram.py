"""A workflow as a picture: what its code can do, what its instances did, or both drawn together.

Everything that a picture shows is decided here; `mermaid`, `dot` and `svg` only write it down.

    Diagram ─┬─ Node     a state, or one of the round marks at which an instance begins and ends
             ├─ Arrow    all steps from one node to another, drawn as one line with a list of labels
             │  └─ Step  one of them: by which message, under which guards, how often
             └─ notes    what is not drawn, and what could not be read
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mainspring.analysis.diagram.mining import BEGIN, Mined, MinedStep
from mainspring.analysis.reading.model import ANY_STATE, Machine, Transition

Seen: TypeAlias = Literal["both", "code", "history"]
"""Where something was seen: in the code and in the history, in the code only (it never happened), in the history only
(older code did it). In a diagram of one source everything is `both`: there is nothing to hold it against."""

NodeKind: TypeAlias = Literal["state", "begin", "end", "unknown"]

GUARDS_SHOWN: Final = 3
UNRESOLVED_SHOWN: Final = 20

_Key: TypeAlias = tuple[str, str, str, str | None]


class Step(Struct, frozen=True):
    """One kind of step: by which message, under which guards, and what it decided.

    `count` is how often it happened, None where history was not looked at. `then` is the state in which the instance
    ended, where the arrow leads to an end mark.

    >>> Step("PlaceOrder", "both", count=1_204).label
    'PlaceOrder ×1,204'
    """

    message: str
    seen: Seen
    guards: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    count: int | None = None
    then: str | None = None

    @property
    def head(self) -> str:
        """The message, the state in which the instance ended if need be, and how often."""
        then = f" → {self.then}" if self.then else ""
        count = f" ×{self.count:,}" if self.count else ""
        return f"{self.message}{then}{count}"

    @property
    def guard(self) -> str:
        """The guard, if there is one and not several."""
        return f"[{self.guards[0]}]" if len(self.guards) == 1 else ""

    @property
    def label(self) -> str:
        """What stands beside the line."""
        return f"{self.head} {self.guard}".rstrip()

    @property
    def told(self) -> str:
        """All that is known of it, in one line, for a tooltip."""
        never = {"code": "never happened", "history": "not in the code: older code did it", "both": ""}[self.seen]
        parts = (self.label, *self._guards(), *self.outputs, *self.places, never)
        return " · ".join(part for part in parts if part)

    def _guards(self) -> tuple[str, ...]:
        if len(self.guards) < 2:
            return ()
        more = len(self.guards) - GUARDS_SHOWN
        shown = [f"[{guard}]" for guard in self.guards[:GUARDS_SHOWN]]
        return (" or ".join([*shown, f"{more} more"] if more > 0 else shown),)


class Arrow(Struct, frozen=True):
    """All steps from one node to another.

    >>> Arrow("New", "Paid", (Step("Pay", "code"), Step("PayLater", "both"))).seen
    'both'
    """

    source: str
    target: str
    steps: tuple[Step, ...] = ()

    @property
    def seen(self) -> Seen:
        """Where the line was seen: if its steps differ, it is in both."""
        found: set[Seen] = {step.seen for step in self.steps}
        return found.pop() if len(found) == 1 else "both"

    @property
    def count(self) -> int:
        """How often it was taken."""
        return sum(step.count or 0 for step in self.steps)


class Node(Struct, frozen=True):
    """A state, or a mark. `ends` says how instances ended that came here, where all did.

    `visits` and `dwell_seconds`, the median of those who left, are None where history does not say.
    """

    name: str
    kind: NodeKind = "state"
    seen: Seen = "both"
    ends: tuple[str, ...] = ()
    doc: str = ""
    visits: int | None = None
    now: int | None = None
    dwell_seconds: float | None = None


class Diagram(Struct, frozen=True):
    """What is drawn. Nodes and arrows have a fixed order: that of the code, then what history adds, by frequency."""

    workflow: str
    source: Literal["code", "history", "both"]
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    workflow_version: int | None = None
    instances: int | None = None
    notes: tuple[str, ...] = ()

    def node(self, name: str) -> Node:
        """Return the node of a name."""
        return next(node for node in self.nodes if node.name == name)


class _Found(Struct):
    """What is known of one kind of step, while it is collected."""

    seen: Seen
    guards: list[str]
    outputs: list[str]
    places: list[str]
    count: int | None = None
    hidden: bool = False


def diagram_of(machine: Machine | None, mined: Mined | None, *, ignored: bool = False) -> Diagram:
    """Return the diagram of the code, of the history, or of both.

    Inputs that are ignored (nothing is decided and the state stays) are left out unless `ignored` asks for them.

    >>> diagram_of(Machine("Counter"), None).source
    'code'
    """
    if machine is None and mined is None:
        raise ValueError("There is neither code nor history to draw.")
    found = _steps(machine, mined)
    hidden = 0 if ignored else sum(step.hidden for step in found.values())
    drawn = {key: step for key, step in found.items() if ignored or not step.hidden}
    nodes = _nodes(machine, mined, drawn)
    arrows = _arrows(drawn, nodes, _initial(machine, mined))
    used = {end for arrow in arrows for end in (arrow.source, arrow.target)}
    return Diagram(
        workflow=machine.workflow if machine is not None else mined.workflow if mined is not None else "",
        source="both" if machine and mined else "code" if machine else "history",
        nodes=tuple(node for node in nodes.values() if node.kind == "state" or node.name in used),
        arrows=arrows,
        workflow_version=None if machine is None else machine.version,
        instances=None if mined is None else mined.instances,
        notes=(*_hidden(hidden), *_unresolved(machine), *(() if mined is None else mined.notes)),
    )


# ---- steps


def _steps(machine: Machine | None, mined: Mined | None) -> dict[_Key, _Found]:
    found: dict[_Key, _Found] = {}
    for transition in () if machine is None else machine.transitions:
        _add_code(found, transition, alone=mined is None)
    lost = {(gap.source, gap.message) for gap in (() if machine is None else machine.gaps)}
    for step in () if mined is None else mined.steps:
        # Where the code could not be read, it may be older code that did this.
        unread = machine is None or _is_unread(machine, step)
        _add_history(found, step, lost, unless="both" if unread else "history")
        somewhere = found.get((step.source, step.message, ANY_STATE, step.ends))
        if somewhere is not None and machine is not None:
            somewhere.seen = "both"
    return found


def _is_unread(machine: Machine, step: MinedStep) -> bool:
    return any(
        place.source in ("", step.source) and place.message in ("", step.message) for place in machine.unresolved
    )


def _add_code(found: dict[_Key, _Found], transition: Transition, *, alone: bool) -> None:
    key = (transition.source, transition.message, transition.target, transition.ends)
    step = found.setdefault(key, _Found("both" if alone else "code", [], [], [], hidden=True))
    step.hidden = step.hidden and transition.ignored
    step.guards.append(transition.guard)
    for output in transition.outputs:
        _add(step.outputs, str(output))
    _add(step.places, "" if transition.decided is None else str(transition.decided))


def _add_history(found: dict[_Key, _Found], step: MinedStep, lost: set[tuple[str, str]], *, unless: Seen) -> None:
    """Add a step that happened; `unless` the code has it, it was seen there."""
    key = (step.source, step.message, step.target, step.ends)
    known = found.get(key)
    if known is None:
        # A timer that lost its race, or whatever else is ignored: the code has no case for it, and needs none.
        passed = step.source == step.target and step.ends is None and (step.source, step.message) in lost
        known = found[key] = _Found(unless, [], [*step.outputs], [], hidden=passed)
    elif known.seen == "code":
        known.seen = "both"
    known.count = (known.count or 0) + step.count


def _add(texts: list[str], text: str) -> None:
    if text and text not in texts:
        texts.append(text)


# ---- nodes


def _nodes(machine: Machine | None, mined: Mined | None, steps: dict[_Key, _Found]) -> dict[str, Node]:
    nodes: dict[str, Node] = {BEGIN: Node(BEGIN, "begin")}
    for state in () if machine is None else machine.states:
        nodes[state.name] = Node(state.name, seen="both" if mined is None else "code", doc=state.doc)
    for visited in () if mined is None else mined.states:
        known = nodes.get(visited.name)
        seen: Seen = "both" if known is not None or machine is None else "history"
        nodes[visited.name] = Node(
            visited.name,
            seen=seen,
            doc="" if known is None else known.doc,
            visits=visited.visits,
            now=visited.now,
            dwell_seconds=visited.dwell_seconds,
        )
    for source, _, target, _ in steps:
        for name in (source, target):
            nodes.setdefault(name, Node(name, "unknown" if name == ANY_STATE else "state"))
    first = _initial(machine, mined)
    if first in nodes:
        # An initial state that is left at once is no less real: every instance was in it.
        nodes[first] = replace(nodes[first], seen="both") if mined and mined.instances else nodes[first]
    for name, ends in _ends(steps).items():
        nodes[name] = replace(nodes[name], ends=ends)
    return nodes


def _initial(machine: Machine | None, mined: Mined | None) -> str:
    if machine is not None:
        return next((state.name for state in machine.states if state.initial), "")
    return (mined.initial or "") if mined is not None else ""


def _ends(steps: dict[_Key, _Found]) -> dict[str, tuple[str, ...]]:
    """Return the states that nothing leaves, and in which all instances that came ended; and how they ended."""
    arriving: dict[str, list[str | None]] = {}
    for source, _, target, ends in steps:
        if source != target:
            arriving.setdefault(target, []).append(ends)
    left = {source for source, *_ in steps}
    return {
        name: tuple(dict.fromkeys(end for end in ends if end is not None))
        for name, ends in arriving.items()
        if name not in left and name != ANY_STATE and None not in ends
    }


# ---- arrows


def _arrows(steps: dict[_Key, _Found], nodes: dict[str, Node], initial: str) -> tuple[Arrow, ...]:
    """Return the arrows; steps that end an instance elsewhere than in a state that is an end lead to a mark."""
    drawn: dict[tuple[str, str], list[Step]] = {}
    for (source, message, target, ends), found in steps.items():
        then, to = None, target
        if ends is not None and not nodes[target].ends:
            to = f"({ends})"
            then = target if target != source else None
            nodes.setdefault(to, Node(to, "end", ends=(ends,)))
        # What happens without a guard happens always, whatever guards lead to it as well.
        guards = () if "" in found.guards else tuple(dict.fromkeys(found.guards))
        step = Step(message, found.seen, guards, (*found.outputs,), (*found.places,), found.count, then)
        drawn.setdefault((source, to), []).append(step)
    begins = (Arrow(BEGIN, initial),) if initial in nodes else ()
    return (*begins, *(Arrow(source, target, (*steps,)) for (source, target), steps in drawn.items()))


# ---- notes


def _hidden(count: int) -> tuple[str, ...]:
    if not count:
        return ()
    one, many = "step that changes and decides nothing is", "steps that change and decide nothing are"
    return (f"{count} {one if count == 1 else many} not drawn.",)


def _unresolved(machine: Machine | None) -> tuple[str, ...]:
    if machine is None:
        return ()
    shown = tuple(f"Could not be read: {place}" for place in machine.unresolved[:UNRESOLVED_SHOWN])
    more = len(machine.unresolved) - UNRESOLVED_SHOWN
    return (*shown, f"{more} more places could not be read.") if more > 0 else shown

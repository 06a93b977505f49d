r"""A diagram as Mermaid: a `stateDiagram-v2`, which GitHub, GitLab and many wikis draw by themselves.

Mermaid draws all lines of a state diagram alike, so what was seen on one side only is said in words, and states have
classes. It reads a label up to the end of its line and knows no quotes in it, so what means something to it is written
as `#58;`, the number of the character.
"""

from __future__ import annotations

import re
from typing import Final

from mainspring.analysis.diagram.diagram import Arrow, Diagram, Node, Seen, Step
from mainspring.analysis.diagram.labels import cut, dwell_of, names_of

GUARD_CHARACTERS: Final = 60
LABELS_SHOWN: Final = 6

_ONE_SIDED: Final[dict[Seen, str]] = {"both": "", "code": " (never happened)", "history": " (older code)"}
_CLASSES: Final = (
    "classDef code stroke-dasharray: 4 4, color: #888888",
    "classDef history stroke: #c2410c, color: #c2410c",
)
# Words with which Mermaid begins a statement, or which it takes for something else than a state's name.
_RESERVED: Final = frozenset(
    {"accdescr", "acctitle", "as", "class", "classdef", "click", "default", "direction", "end", "hide", "href", "note"}
    | {"scale", "state", "style", "title"}
)


def to_mermaid(diagram: Diagram) -> str:
    """Return a diagram as Mermaid.

    >>> print(to_mermaid(Diagram("Door", "code", (Node("Open"), Node("Shut")), (Arrow("Open", "Shut", ()),))))
    stateDiagram-v2
        direction TB
        state "Open" as Open
        state "Shut" as Shut
        Open --> Shut
    <BLANKLINE>
    """
    ids = names_of(diagram.nodes, _RESERVED)
    states = [node for node in diagram.nodes if node.kind in ("state", "unknown")]
    lines = ["stateDiagram-v2", "    direction TB"]
    lines += [f"    %% {_comment(note)}" for note in diagram.notes]
    lines += [f'    state "{_state(node)}" as {ids[node.name]}' for node in states]
    lines += [_arrow(arrow, diagram, ids) for arrow in diagram.arrows]
    lines += [f"    {ids[node.name]} --> [*] : {_text(end)}" for node in states for end in node.ends]
    lines += _classes(states, ids)
    return "\n".join(lines) + "\n"


def _state(node: Node) -> str:
    dwell = dwell_of(node)
    return "<br/>".join(_text(part) for part in (node.name, dwell) if part)


def _arrow(arrow: Arrow, diagram: Diagram, ids: dict[str, str]) -> str:
    source, target = (
        "[*]" if diagram.node(end).kind in ("begin", "end") else ids[end] for end in (arrow.source, arrow.target)
    )
    end = diagram.node(arrow.target)
    labels = [_label(step) + (f" ({end.ends[0]})" if end.kind == "end" else "") for step in arrow.steps]
    if len(labels) > LABELS_SHOWN:
        labels = [*labels[: LABELS_SHOWN - 1], f"+{len(labels) - LABELS_SHOWN + 1} more"]
    shown = "<br/>".join(_text(label) for label in labels)
    return f"    {source} --> {target}" + (f" : {shown}" if shown else "")


def _label(step: Step) -> str:
    return f"{step.head} {cut(step.guard, GUARD_CHARACTERS)}".rstrip() + _ONE_SIDED[step.seen]


def _classes(states: list[Node], ids: dict[str, str]) -> list[str]:
    lines: list[str] = []
    for line in _CLASSES:
        name = line.split()[1]
        members = [ids[node.name] for node in states if node.seen == name]
        if members:
            lines += [f"    {line}", f"    class {','.join(members)} {name}"]
    return lines


def _text(text: str) -> str:
    """Return a text in which Mermaid sees nothing but a text.

    >>> _text('amount > 5; "large"')
    'amount #62; 5#59; #34;large#34;'
    """
    return re.sub(r"[^\w .,()\[\]×→·…+*/=!?'|^@$-]", lambda found: f"#{ord(found[0])};", text.replace("\n", " "))


def _comment(text: str) -> str:
    """Return a text for a comment: without the braces that begin a directive there."""
    return re.sub(r"\s+", " ", text).replace("{", "(").replace("}", ")")

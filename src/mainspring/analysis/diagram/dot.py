"""A diagram as DOT, for Graphviz and other tools that read it."""

from __future__ import annotations

from typing import Final

from mainspring.analysis.diagram.diagram import Arrow, Diagram, Node, Seen
from mainspring.analysis.diagram.labels import cut, dwell_of

GUARD_CHARACTERS: Final = 60
LABELS_SHOWN: Final = 6

_STYLES: Final[dict[Seen, str]] = {
    "both": "",
    "code": ' style="rounded,dashed" color="#888888" fontcolor="#888888"',
    "history": ' color="#c2410c" fontcolor="#c2410c"',
}
_LINES: Final[dict[Seen, str]] = {
    "both": "",
    "code": ' style="dashed" color="#888888" fontcolor="#888888"',
    "history": ' color="#c2410c" fontcolor="#c2410c"',
}


def to_dot(diagram: Diagram) -> str:
    """Return a diagram as DOT.

    >>> print(to_dot(Diagram("Door", "code", (Node("Open"),), ())))
    digraph "Door" {
        rankdir=TB
        bgcolor="transparent"
        node [shape=box style=rounded fontname="Helvetica"]
        edge [fontname="Helvetica" fontsize=10]
        "Open" [label="Open"]
    }
    <BLANKLINE>
    """
    lines = [
        f"digraph {_quoted(diagram.workflow)} {{",
        "    rankdir=TB",
        '    bgcolor="transparent"',
        '    node [shape=box style=rounded fontname="Helvetica"]',
        '    edge [fontname="Helvetica" fontsize=10]',
    ]
    lines += [f"    // {' '.join(note.split())}" for note in diagram.notes]
    lines += [f"    {_quoted(node.name)} [{_node(node)}]" for node in diagram.nodes]
    lines += [f"    {_quoted(arrow.source)} -> {_quoted(arrow.target)}{_arrow(arrow)}" for arrow in diagram.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def _node(node: Node) -> str:
    match node.kind:
        case "begin":
            return 'label="" shape=circle style=filled fillcolor="#888888" width=0.15'
        case "end":
            return f"label={_quoted(node.ends[0])} shape=oval peripheries=2"
        case "unknown":
            return f'label={_quoted(node.name)} style="rounded,dotted"'
        case "state":
            label = "\n".join(part for part in (node.name, *node.ends, dwell_of(node)) if part)
            ended = " peripheries=2" if node.ends else ""
            return f"label={_quoted(label)}{ended}{_STYLES[node.seen]}"


def _arrow(arrow: Arrow) -> str:
    labels = [f"{step.head} {cut(step.guard, GUARD_CHARACTERS)}".rstrip() for step in arrow.steps]
    if len(labels) > LABELS_SHOWN:
        labels = [*labels[: LABELS_SHOWN - 1], f"+{len(labels) - LABELS_SHOWN + 1} more"]
    if not labels:
        return ""
    tooltip = "\n".join(step.told for step in arrow.steps)
    return f" [label={_quoted(chr(10).join(labels))} tooltip={_quoted(tooltip)}{_LINES[arrow.seen]}]"


def _quoted(text: str) -> str:
    r"""Return a text as a DOT string, in which a backslash is one and a new line is one.

    >>> _quoted('say "a\\b"')
    '"say \\"a\\\\b\\""'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'

"""A strict reader of the part of Mermaid's `stateDiagram-v2` that is written here. What it does not know is an error.

Taken from Mermaid's own lexer: a label runs from ` : ` to the end of the line and holds no `:`, `;`, `#` but those of
an entity such as `#58;`; a state's description stands in double quotes and holds none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ENTITY = r"#\d+;"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
END = r"(?:\[\*\]|" + NAME + ")"
LABEL = rf"(?:{ENTITY}|[^:;#\n])+"
RESERVED = {"end", "state", "note", "class", "classdef", "direction", "style", "default", "as", "click", "title"}

STATE = re.compile(rf'    state "((?:{ENTITY}|[^"#:;\n])+)" as ({NAME})')
ARROW = re.compile(rf"    ({END}) --> ({END})(?: : ({LABEL}))?")
CLASS = re.compile(rf"    class ({NAME}(?:,{NAME})*) ({NAME})")
CLASS_DEFINITION = re.compile(rf"    classDef ({NAME}) [a-z-]+: [^,;:]+(?:, [a-z-]+: [^,;:]+)*")
COMMENT = re.compile(r"    %% [^{}\n]*")


@dataclass
class Read:
    states: dict[str, str] = field(default_factory=dict)
    arrows: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)


def read_mermaid(text: str) -> Read:
    """Return what a diagram says; states by their names in the text."""
    head, direction, *lines = text.removesuffix("\n").split("\n")
    assert (head, direction) == ("stateDiagram-v2", "    direction TB")
    read, defined = Read(), set[str]()
    for line in lines:
        if found := STATE.fullmatch(line):
            assert found[2].lower() not in RESERVED, line
            assert found[2] not in read.states, line
            read.states[found[2]] = shown(found[1])
        elif found := ARROW.fullmatch(line):
            labels = tuple(shown(label) for label in (found[3] or "").split("<br/>") if label)
            read.arrows.append((found[1], found[2], labels))
        elif found := CLASS.fullmatch(line):
            assert found[2] in defined, line
            read.classes[found[2]] = tuple(found[1].split(","))
        elif found := CLASS_DEFINITION.fullmatch(line):
            defined.add(found[1])
        else:
            assert COMMENT.fullmatch(line), f"Mermaid would not understand {line!r}"
            read.comments.append(line[7:])
    known = {*read.states, "[*]"}
    assert {end for source, target, _ in read.arrows for end in (source, target)} <= known
    assert {name for names in read.classes.values() for name in names} <= known
    return read


def shown(text: str) -> str:
    """Return a text as a reader of the picture sees it."""
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)

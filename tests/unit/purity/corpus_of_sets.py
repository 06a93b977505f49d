"""Small workflows that use sets: where the order of a set decides, and where it does not."""

from __future__ import annotations

from tests.unit.purity.corpus import Snippet, impure

LABELS = """\
@dataclass(frozen=True)
class Late:
    labels: frozenset[str] = frozenset()
    rooms: tuple["Room", ...] = ()
@dataclass(frozen=True)
class Room:
    guests: "set[str] | None" = None
"""


def ordered(what: str, body: str, *, top: str = LABELS, evolve: str = "return None", more: str = "") -> Snippet:
    return impure("order", what, body, top=top, evolve=evolve, more=more)


IMPURE: dict[str, Snippet] = {
    "a loop over a display": ordered(
        "loops over {message.id, 'b'}", "for x in {message.id, 'b'}:\n    return [Send(Done(x))]"
    ),
    "a loop over a field": ordered(
        "loops over state.labels", "out = []\nfor x in state.labels:\n    out.append(Send(Done(x)))\nreturn out"
    ),
    "a loop over a field of a part": ordered(
        "loops over room.guests",
        "out = []\nfor room in state.rooms:\n    for x in room.guests:\n        out.append(Send(Done(x)))\nreturn out",
    ),
    "a loop over a counted set": ordered(
        "loops over enumerate(state.labels)",
        "out = []\nfor i, x in enumerate(state.labels):\n    out.append(Send(Done(x)))\nreturn out",
    ),
    "a list comprehension": ordered("loops over state.labels", "return [Send(Done(x)) for x in state.labels]"),
    "a list comprehension over set()": ordered(
        "loops over set(message.tags)", "return [Send(Done(x)) for x in set(message.tags)]"
    ),
    "a list comprehension over a difference": ordered(
        "loops over state.labels - {message.id}", "return [Send(Done(x)) for x in state.labels - {message.id}]"
    ),
    "a list comprehension over a union": ordered(
        "loops over state.labels.union(message.tags)",
        "return [Send(Done(x)) for x in state.labels.union(message.tags)]",
    ),
    "a list comprehension over a set comprehension": ordered(
        "loops over {tag.upper() for tag in message.tags}",
        "return [Send(Done(x)) for x in {tag.upper() for tag in message.tags}]",
    ),
    "a local name": ordered("loops over seen", "seen = frozenset(message.tags)\nreturn [Send(Done(x)) for x in seen]"),
    "a local name that is filled": ordered(
        "loops over seen",
        "seen: set[str] = set()\nseen.add(message.id)\nseen |= set(message.tags)\nreturn [Send(Done(x)) for x in seen]",
    ),
    "a local name that is a set in one branch": ordered(
        "loops over seen",
        "if state.total:\n    seen = set(message.tags)\nelse:\n    seen = []\nreturn [Send(Done(x)) for x in seen]",
    ),
    "a name bound by case": ordered(
        "loops over labels",
        "match message, state:\n    case Go(), Idle(labels=labels):\n        return [Send(Done(x)) for x in labels]",
    ),
    "a name bound by its place in a case": ordered(
        "loops over labels",
        "match state:\n    case Idle(labels):\n        return [Send(Done(x)) for x in labels]",
    ),
    "a constant of the module": ordered(
        "loops over OFFICES",
        "return [Send(Done(x)) for x in OFFICES]",
        top="OFFICES = frozenset({'Bern', 'Graz'})",
    ),
    "a list": ordered("makes a list of state.labels", "return [Send(Done(list(state.labels)[0]))]"),
    "a tuple": ordered(
        "makes a tuple of (label.upper() for label in state.labels)",
        "return [Send(Done(str(tuple(label.upper() for label in state.labels))))]",
    ),
    "an unpacked set": ordered("lists state.labels", "return [Send(Done([*state.labels][0]))]"),
    "the first": ordered("takes the first of iter(state.labels)", "return [Send(Done(next(iter(state.labels))))]"),
    "any one": ordered("takes any one of set(message.tags)", "return [Send(Done(set(message.tags).pop()))]"),
    "a joined text": ordered("joins state.labels", "return [Send(Done(', '.join(state.labels)))]"),
    "evolve": ordered(
        "makes a list of state.labels", "return []", evolve="return replace(state, items=list(state.labels))"
    ),
    "a helper's parameter": ordered(
        "loops over labels",
        "return sent(state.labels)",
        top=f"{LABELS}\ndef sent(labels: frozenset[str]): return [Send(Done(x)) for x in labels]",
    ),
    "a field beside one that only type checkers know": ordered(
        "loops over state.labels",
        "return [Send(Done(x)) for x in state.labels]",
        top="@dataclass(frozen=True)\nclass Late:\n    labels: frozenset[str] = frozenset()\n    price: Money = 0",
    ),
    "a method of the state": ordered(
        "makes a tuple of self.labels",
        "return [Send(Done(str(state.all())))]",
        top="@dataclass(frozen=True)\n"
        "class Late:\n"
        "    labels: frozenset[str] = frozenset()\n"
        "    def all(self): return tuple(self.labels)",
    ),
}


def unordered(body: str, *, top: str = LABELS, evolve: str = "return None") -> Snippet:
    return Snippet(body, top, evolve)


PURE: dict[str, Snippet] = {
    "a sorted set": unordered("return [Send(Done(x)) for x in sorted(state.labels)]"),
    "a sorted set in a loop": unordered("for x in sorted(state.labels - {message.id}):\n    pass\nreturn []"),
    "what is sorted at last": unordered(
        "return [Send(Done(x)) for x in sorted([label.upper() for label in state.labels])]"
    ),
    "a list that is sorted": unordered("return [Send(Done(x)) for x in sorted(list(state.labels))]"),
    "membership": unordered("return [] if message.id in state.labels else None"),
    "membership in a list made of it": unordered(
        "return [] if message.id in [label.upper() for label in state.labels] else None"
    ),
    "counting": unordered("return [Send(Done(str(len(state.labels))))]"),
    "sums and extremes": unordered(
        "return [Send(Done(str((sum(len(x) for x in state.labels), min(state.labels), max(state.labels)))))]"
    ),
    "all and any": unordered("return [] if all(x for x in state.labels) or any(state.labels) else None"),
    "set algebra": unordered(
        "return [] if state.labels | {message.id} <= state.labels.union(message.tags) else None",
        evolve="return replace(state, labels=frozenset(x.upper() for x in state.labels) & state.labels)",
    ),
    "a set made of a set": unordered("return [] if {x.upper() for x in state.labels} else None"),
    "a dictionary": unordered("return [Send(Done(x)) for x in {'a': 1, 'b': 2}]"),
    "a set of one": unordered("return [Send(Done(x)) for x in {message.id}]"),
    "a set of numbers": unordered("return [Send(Done(str(x))) for x in {1, 2, 3}]"),
    "a list of the message": unordered("return [Send(Done(x)) for x in message.tags]"),
    "a name that holds a list again": unordered(
        "labels = state.labels\nlabels = sorted(labels)\nreturn [Send(Done(x)) for x in labels]"
    ),
    "the one that is looked for": unordered(
        "return [Send(Done(next((x for x in state.labels if x == message.id), '')))]"
    ),
    "a field that is a set in one message and a list in another": unordered(
        "return [Send(Done(x)) for x in message.tags]",
        top="@dataclass(frozen=True)\nclass Late:\n    tags: frozenset[str] = frozenset()",
    ),
    "a set that is handed on": unordered("return [Send(Done(str(offer(state.labels))))]", top=f"{LABELS}\noffer = len"),
    "the difference of two numbers": unordered("return [Send(Done(str(x))) for x in range(state.total - 1)]"),
}

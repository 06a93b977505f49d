"""A case's pattern against a value: does it match on this way, and what do its names stand for then?"""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from mainspring.analysis.reading.frames import Frame, Reading
from mainspring.analysis.reading.questions import Answer, classes_of, element_types, equal, instance
from mainspring.analysis.reading.records import class_of
from mainspring.analysis.reading.values import Items, Known, Repeated, Symbol, Table, Value, lifted, text_of
from mainspring.analysis.reading.ways import Way

_SIMPLE: Final = re.compile(r"[\w.]{1,60}|len\([\w.]{1,60}\)")
_SELF_MATCHING: Final = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
_REST: Final = "[the rest]"


class Patterns:
    """Matches the patterns of one match statement, and notes what was asked."""

    def __init__(self, reader: Reading, frame: Frame) -> None:
        self._reader = reader
        self._frame = frame
        self._asked_more = False
        """Whether something was asked that has no short name."""
        self._any_asked = False
        """Whether the outcome hangs on anything that was asked."""

    @property
    def _way(self) -> Way:
        return self._reader.way

    def case(self, pattern: ast.pattern, subject: ast.expr, value: Value) -> bool:
        """Return True if a case's pattern matches the subject."""
        self._asked_more = self._any_asked = False
        plain = _is_plain(subject)
        quiet, self._frame.quiet = self._frame.quiet, self._frame.quiet or not plain
        matched = self.matches(pattern, value)
        asked_hidden = self._asked_more or (not plain and self._any_asked)
        self._frame.quiet = quiet
        if asked_hidden:
            what = f"{self._frame.text(subject)} is"
            text = self._frame.text(pattern)
            self._way.note(f"{what} {text}", f"{what} not {text}", holds=matched, shown=not quiet)
        return matched

    def matches(self, pattern: ast.pattern, value: Value) -> bool:
        """Return True if a pattern matches on this way, and bind its names."""
        match pattern:
            case ast.MatchAs(pattern=inner, name=name):
                matched = inner is None or self.matches(inner, value)
                if matched and name is not None:
                    self._frame.env[name] = value
                return matched
            case ast.MatchOr(patterns=patterns):
                return any(self.matches(each, value) for each in patterns)
            case ast.MatchValue(value=expected):
                wanted = self._reader.evaluate(expected, self._frame)
                return self._note(equal(self._way, value, wanted), value, "==", "!=", self._frame.text(expected))
            case ast.MatchSingleton(value=expected):
                return self._note(equal(self._way, value, Known(expected)), value, "is", "is not", repr(expected))
            case ast.MatchClass():
                return self._matches_class(pattern, value)
            case ast.MatchSequence(patterns=patterns):
                return self._matches_sequence(patterns, value)
            case ast.MatchMapping():
                return self._matches_mapping(pattern, value)
            case _:
                return self._unknown(pattern, value)

    def _matches_class(self, pattern: ast.MatchClass, value: Value) -> bool:
        classes = classes_of(self._reader.evaluate(pattern.cls, self._frame))
        name = ast.unparse(pattern.cls)
        if not self._note_class(instance(self._way, value, classes), value, name):
            return False
        cls = classes[0]
        positional: tuple[str, ...] = getattr(cls, "__match_args__", ())
        if issubclass(cls, _SELF_MATCHING) and len(pattern.patterns) == 1:
            return self.matches(pattern.patterns[0], value)
        named = [
            *zip(positional, pattern.patterns, strict=False),
            *zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True),
        ]
        return all(self.matches(each, self._reader.attribute(value, name, self._frame)) for name, each in named)

    def _matches_sequence(self, patterns: list[ast.pattern], value: Value) -> bool:
        if isinstance(value, Known):
            value = lifted(value.value)
        if isinstance(value, Symbol):
            value_or_no = self._items_of(patterns, value)
            if value_or_no is None:
                return False
            value = value_or_no
        if not isinstance(value, Items):
            return False
        star = next((i for i, each in enumerate(patterns) if isinstance(each, ast.MatchStar)), None)
        parts = value.whole
        if parts is None:
            return self._matches_repeated(patterns, value)
        if len(parts) != len(patterns) if star is None else len(parts) < len(patterns) - 1:
            return False
        if star is None:
            return all(self.matches(each, part) for each, part in zip(patterns, parts, strict=True))
        behind = len(patterns) - star - 1
        middle: list[Value | Repeated] = [*parts[star : len(parts) - behind]]
        rest = parts[len(parts) - behind :]
        name: str | None = getattr(patterns[star], "name", None)
        if name is not None:
            self._frame.env[name] = _starred(middle)
        return all(self.matches(each, part) for each, part in zip(patterns[:star], parts, strict=False)) and all(
            self.matches(each, part) for each, part in zip(patterns[star + 1 :], rest, strict=True)
        )

    def _items_of(self, patterns: list[ast.pattern], value: Symbol) -> Items | None:
        """Return a symbol as so many items, if it is so on this way."""
        kind = instance(self._way, value, (tuple, list))
        if not self._note(kind, value, "is", "is not", "a sequence"):
            return None
        least = sum(not isinstance(each, ast.MatchStar) for each in patterns)
        size = Symbol(f"len({value.path})", (int,))
        element = next((element_types(hint) for hint in self._way.types(value) or ()), None)
        items: list[Value | Repeated] = [Symbol(f"{value.path}[{place}]", element) for place in range(least)]
        if least == len(patterns):
            answer = equal(self._way, size, Known(least))
            self._any_asked = self._any_asked or self._way.has_learnt(size)
            subject: Value = size if least else value
            if not self._note(answer, subject, "==", "!=", str(least) if least else "()"):
                return None
        elif least and not self._note(self._at_least(value, least), size, ">=", "<", str(least)):
            return None
        if least < len(patterns):
            place = next(i for i, each in enumerate(patterns) if isinstance(each, ast.MatchStar))
            items.insert(place, Symbol(f"{value.path}{_REST}", (list,)))
        return Items(tuple, items)

    def _at_least(self, value: Symbol, least: int) -> Answer:
        empty = self._way.equals(Symbol(f"len({value.path})", (int,)), 0)
        if empty is True:
            return Answer(holds=False)
        size = Symbol(f"len({value.path})", (int,))
        key = f"{size.path} >= {least}"
        known = self._way.truth(key)
        answer = Answer(known) if known is not None else Answer(self._way.ask(key), open=True)
        if answer.holds:
            for fewer in range(least):
                self._way.exclude(size, fewer)
        elif least == 1:
            self._way.settle(size, 0)
        return answer

    def _matches_repeated(self, patterns: list[ast.pattern], value: Items) -> bool:
        """Match a list of which it is not known how long it is."""
        return self._unknown(ast.MatchSequence(patterns), value)

    def _matches_mapping(self, pattern: ast.MatchMapping, value: Value) -> bool:
        if isinstance(value, Known):
            value = lifted(value.value)
        if isinstance(value, Symbol):
            return self._unknown(pattern, value)
        if not isinstance(value, Table):
            return False
        for key, each in zip(pattern.keys, pattern.patterns, strict=True):
            wanted = self._reader.evaluate(key, self._frame)
            if not isinstance(wanted, Known) or wanted.value not in value.entries:
                return False
            if not self.matches(each, value.entries[wanted.value]):
                return False
        if pattern.rest is not None:
            self._frame.env[pattern.rest] = Symbol(f"the rest of {text_of(value)}", (dict,))
        return True

    def _unknown(self, pattern: ast.pattern, value: Value) -> bool:
        """Match what cannot be looked into: it may match or not, and its names stand for anything."""
        key = f"{text_of(value)} matches {ast.unparse(pattern)}"
        known = self._way.truth(key)
        answer = Answer(known) if known is not None else Answer(self._way.ask(key), open=True)
        for node in ast.walk(pattern):
            name = getattr(node, "rest", None) or getattr(node, "name", None)
            if isinstance(name, str):
                self._frame.env[name] = Symbol(f"{name} of {key}")
        self._any_asked = True
        if answer.open:
            self._asked_more = True
        return answer.holds

    def _note_class(self, answer: Answer, value: Value, name: str) -> bool:
        """Note a question about a class; where only one other is left, the opposite names that."""
        types = self._way.types(value) if isinstance(value, Symbol) and not answer.holds else None
        other = class_of(types[0]) if types is not None and len(types) == 1 else None
        if other is None:
            return self._note(answer, value, "is", "is not", name)
        shown = None if other is type(None) else other.__name__
        return self._note(answer, value, "is", f"is {shown}", name, negated="")

    def _note(self, answer: Answer, value: Value, yes: str, no: str, what: str, negated: str | None = None) -> bool:
        if isinstance(value, Symbol) and self._way.has_learnt(value):
            self._any_asked = True
        if answer.open:
            self._any_asked = True
            path = text_of(value)
            if _SIMPLE.fullmatch(path):
                opposite = f"{path} {no} {what if negated is None else negated}".rstrip()
                self._way.note(f"{path} {yes} {what}", opposite, holds=answer.holds, shown=not self._frame.quiet)
            else:
                self._asked_more = True
        return answer.holds


def _starred(middle: list[Value | Repeated]) -> Value:
    match middle:
        case [Symbol(path) as rest] if path.endswith(_REST):
            return rest
        case _:
            return Items(list, middle)


def _is_plain(subject: ast.expr) -> bool:
    """Return True if a subject is made of names and attributes only."""
    match subject:
        case ast.Name():
            return True
        case ast.Attribute(value=inner):
            return _is_plain(inner)
        case ast.Tuple(elts=parts):
            return all(_is_plain(part) for part in parts)
        case _:
            return False


def bind_target(target: ast.expr, value: Value, reader: Reading, frame: Frame) -> None:
    """Let the target of an assignment or a loop stand for a value."""
    match target:
        case ast.Name(id=name):
            frame.env[name] = value
        case ast.Starred(value=inner):
            bind_target(inner, value, reader, frame)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            known: Any = lifted(value.value) if isinstance(value, Known) else value
            parts = known.whole if isinstance(known, Items) else None
            exact = parts is not None and len(parts) == len(targets)
            for place, each in enumerate(targets):
                part = parts[place] if exact and parts is not None else Symbol(f"{text_of(value)}[{place}]")
                bind_target(each, part, reader, frame)
        case _:
            pass  # an attribute or an item of something: what is read is not changed by it

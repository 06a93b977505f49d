"""Under which names the fields of a type are known: in code, and in what is stored."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final, ForwardRef, Literal, TypeVar, cast, get_args, get_origin, get_type_hints, is_typeddict

from msgspec import Struct

from mainspring.codec.hints import fields_of, is_model, is_named_tuple, is_record, union_of, unwrapped
from mainspring.core.messages import type_of
from mainspring.errors import RegistrationError

WHOLE: Final = ""
"""Stands for all of a body, where a field has no name in it nor around it."""

_ALIASES: Final = ("alias", "serialization_alias", "validation_alias")


class Naming(Struct, frozen=True):
    """What is known of the fields of a type, and of all that stand within it.

    `keys` has, for each name of a field, all its names. What is written as an array (a NamedTuple, `array_like`) has
    no names there: its fields go by those of the field that holds it. `types` are the types that stand within it, and
    `open` says that anything may.

    >>> from mainspring.testing.samples import Count
    >>> naming_of(Count).keys
    {'counter': {'counter'}}
    """

    keys: dict[str, set[str]] = {}
    types: set[str] = set()
    open: bool = False

    def names(self, fields: Iterable[str]) -> set[str]:
        """Return all names of these fields.

        >>> Naming({"card": {"card", "cardNumber"}}).names(["card", "note"]) == {"card", "cardNumber", "note"}
        True
        """
        named = set(fields)
        return named.union(*(self.keys.get(field, ()) for field in named))


def naming_of(cls: type[Any]) -> Naming:
    """Return it."""
    reader = _Reader()
    reader.read(cls, frozenset((WHOLE,)))
    return Naming(reader.keys, reader.types, reader.open)


class _Reader:
    """Goes through a type, and meets each class once for each field that holds it."""

    def __init__(self) -> None:
        self.keys: dict[str, set[str]] = {}
        self.types: set[str] = set()
        self.open = False
        self._met: set[tuple[Any, frozenset[str]]] = set()

    def read(self, hint: Any, holder: frozenset[str]) -> None:
        for member in self._members(hint):
            inner, _ = unwrapped(member)
            if not isinstance(inner, Hashable) or (inner, holder) in self._met:
                continue
            self._met.add((inner, holder))
            if is_record(inner) or is_named_tuple(inner) or is_typeddict(inner):
                self._record(inner, holder)
            elif _is_open(inner):
                self.open = True
            elif get_origin(inner) is not Literal:
                for argument in get_args(inner):
                    self.read(argument, holder)

    def _members(self, hint: Any) -> list[Any]:
        try:
            return union_of(hint)
        except RecursionError:  # an alias that leads to itself, as JSON's own types do
            self.open = True
            return []

    def _record(self, hint: Any, holder: frozenset[str]) -> None:
        cls: Any = get_origin(hint) or hint
        declared = type_of(cls)
        self.types.update((declared.name, *declared.aliases))
        self.open |= getattr(cls, "model_config", {}).get("extra") == "allow"
        nameless = _is_nameless(cls)
        for names, inner in self._fields(hint, cls):
            for name in names:
                self.keys.setdefault(name, set()).update(names, holder if nameless else ())
            self.read(inner, holder if nameless else names)

    def _fields(self, hint: Any, cls: Any) -> Iterator[tuple[frozenset[str], Any]]:
        """Yield each field's names, and its type."""
        # pydantic has them of its models, and of dataclasses that it has made or met.
        known: dict[str, Any] = getattr(cls, "__pydantic_fields__", {})
        if is_model(cls):
            for name, field in known.items():
                yield frozenset((name, *_aliases(field))), field.annotation
            return
        try:
            if is_typeddict(cls):
                hints = get_type_hints(cls, include_extras=True)
                fields = [(name, name, each) for name, each in hints.items()]
            else:
                fields = [(field.name, field.key, field.hint) for field in fields_of(hint)]
        except (RegistrationError, NameError, TypeError):
            # pydantic reads more than the codec does.
            self.open = True
            return
        for name, key, each in fields:
            notes = [*unwrapped(each)[1], *([known[name]] if name in known else [])]
            yield frozenset((name, key, *(alias for note in notes for alias in _aliases(note)))), each


def _is_open(hint: Any) -> bool:
    """Return True if a hint says nothing of what may stand there."""
    if hint in (Any, object) or isinstance(hint, str | ForwardRef | TypeVar):
        return True
    origin: Any = get_origin(hint) or hint
    bare = isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, str | bytes)
    return bare and not get_args(hint)


def _is_nameless(cls: Any) -> bool:
    if getattr(cls, "__pydantic_root_model__", False) or is_named_tuple(cls):
        return True
    config = getattr(cls, "__struct_config__", None)
    return config is not None and config.array_like


def _aliases(field: Any) -> Iterator[str]:
    """Yield the other names that pydantic has for a field. One may be several, or a path, as its own classes say."""
    for kind in _ALIASES:
        alias: Any = getattr(field, kind, None)
        for one in getattr(alias, "choices", (alias,)):
            for part in cast("Iterable[Any]", getattr(one, "path", (one,))):
                if isinstance(part, str):
                    yield part

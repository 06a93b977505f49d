"""Reads a type's hints once and builds its shape, or says precisely why it cannot be stored."""

from __future__ import annotations

import dataclasses
import typing
from collections import abc
from collections.abc import Callable
from enum import Enum, Flag, IntEnum
from keyword import iskeyword
from typing import Any, Final, Literal, NoReturn, TypeVar, get_args, get_origin

from msgspec import Meta, Struct

from mainspring.codec.hints import Field, fields_of, is_model, is_named_tuple, is_record, union_of, unwrapped
from mainspring.codec.leaves import RULES, enum_rule, literal_rule
from mainspring.codec.limits import INTEGER_MAX, INTEGER_MIN
from mainspring.codec.models import dumper, loader
from mainspring.codec.shapes import (
    TYPE_KEY,
    VERSION_KEY,
    Choice,
    Fixed,
    Items,
    Leaf,
    Model,
    Record,
    Shape,
    Table,
    Versioned,
)
from mainspring.core.freezing import frozen_fix
from mainspring.core.messages import type_of
from mainspring.errors import RegistrationError

_CONTAINERS: Final[dict[Any, type[Any]]] = {list: list, set: set, frozenset: frozenset}
_SETS: Final[tuple[type[Any], ...]] = (set, frozenset)
_DICTS: Final = (dict, abc.Mapping, abc.MutableMapping)
_INSTEAD: Final[dict[Any, str]] = {
    abc.Sequence: "tuple[…, ...] (or list[…])",
    abc.MutableSequence: "list[…]",
    abc.Collection: "tuple[…, ...]",
    abc.Iterable: "tuple[…, ...]",
    abc.Set: "frozenset[…]",
    abc.MutableSet: "set[…]",
    Callable: "the name of what to call, as a str or an Enum",
    bytearray: "bytes",
    memoryview: "bytes",
    complex: "a dataclass of two floats",
    type: "the type's name, as a str",
    object: "Any, which takes JSON values, or a union of classes",
}
_POSSIBLE: Final = (
    "a frozen dataclass, Struct or pydantic model, a NamedTuple, an Enum, a Literal, a list, tuple, set or dict of "
    "these, or None, bool, int, float, str, bytes, Decimal, UUID, datetime, date, time, timedelta"
)


class Proof(IntEnum):
    """What shows that a value comes back, from the cheapest to the dearest.

    >>> max(Proof.CHECK, Proof.BYTES).name
    'BYTES'
    """

    CHECK = 1
    BYTES = 2
    FIELDS = 3


class Compiled(Struct, frozen=True):
    """A shape, and what was noticed on the way.

    `proof` says what shows that a value comes back: that it passed the check; that its bytes are the same when it was
    read and written again, for a class that computes or refuses something when it is made; or that all fields are the
    same, for a class whose bytes do not hold them all. `bounded` is false where values can nest without end.

    >>> compile_type(int).proof.name
    'CHECK'
    """

    shape: Shape
    proof: Proof
    bounded: bool


def compile_type(cls: type[Any]) -> Compiled:
    """Return the shape of a type, or raise a RegistrationError that names the class, the field and the fix.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Order:
    ...     paid: complex
    >>> compile_type(Order)
    Traceback (most recent call last):
    mainspring.errors.encoding.RegistrationError: Order: its field `paid` is complex, which cannot be read back. \
Use a dataclass of two floats.
    """
    compiler = _Compiler(cls.__name__)
    try:
        shape = compiler.root(cls)
    except RecursionError:
        raise RegistrationError(
            cls.__name__, "refers to itself through a type alias or a NamedTuple", "Let a dataclass stand in between."
        ) from None
    everything = _reachable(shape)
    for one in everything:
        below = _reachable(one)
        one.writes = any(other.special_write for other in below)
        one.reads = any(other.special_read for other in below)
    bounded = compiler.bounded and not any(_holds_itself(one) for one in everything)
    return Compiled(shape, compiler.proof, bounded)


def _holds_itself(shape: Shape) -> bool:
    return any(other is shape for part in shape.below() for other in _reachable(part))


def _reachable(shape: Shape) -> list[Shape]:
    found: dict[int, Shape] = {}
    waiting = [shape]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            waiting += one.below()
    return list(found.values())


class _Compiler:
    """One reading of one type. `owner` and `field` say where it stands, for the errors."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.field = ""
        self.proof = Proof.CHECK
        self.bounded = True
        self._records: dict[Any, Record] = {}

    def root(self, cls: type[Any]) -> Shape:
        """A root's version and name stand beside its body, so it is never wrapped."""
        return self._record(cls) if is_record(cls) and not is_model(cls) else self.shape(cls)

    def shape(self, hint: Any) -> Shape:
        members = union_of(hint)
        if len(members) > 1:
            return self._choice(hint, members)
        hint, notes = unwrapped(members[0])
        if any(isinstance(note, Meta) for note in notes):
            self.proof = max(self.proof, Proof.BYTES)
        if hint is None:
            hint = type(None)
        if hint in RULES:
            self.bounded = self.bounded and hint is not Any
            return Leaf(hint, RULES[hint])
        if isinstance(hint, TypeVar):
            self._refuse(f"is the type variable {hint}", f"Give {self.owner} its parameters, or subclass it with them.")
        return self._of_class(hint) or self._of_container(hint) or self._refuse_unknown(hint)

    def _of_class(self, hint: Any) -> Shape | None:
        if is_model(hint):
            return self._model(hint)
        if is_record(hint):
            record = self._record(hint)
            return self._versioned(record) if record.declared.version > 1 else record
        if is_named_tuple(hint):
            return Fixed(hint, hint, [shape for _, shape in self._fields(hint, hint)])
        if isinstance(hint, type) and issubclass(hint, Enum):
            return self._enum(hint)
        if get_origin(hint) is Literal:
            return self._literal(hint)
        return None

    def _of_container(self, hint: Any) -> Shape | None:
        origin, arguments = get_origin(hint) or hint, get_args(hint)
        if origin in _CONTAINERS:
            return self._items(hint, _CONTAINERS[origin], *(arguments or (Any,)))
        if origin in _DICTS:
            return self._table(hint, *(arguments or (str, Any)))
        if origin is tuple:
            if hint in (tuple, typing.Tuple):  # noqa: UP006  the old spelling is another object
                return self._items(hint, tuple, Any)
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return self._items(hint, tuple, arguments[0])
            return Fixed(hint, tuple, [self.shape(argument) for argument in arguments])
        return None

    def _items(self, hint: Any, container: type[Any], item: Any) -> Shape:
        shape = self.shape(item)
        if container in _SETS and not shape.hashable:
            self._refuse(f"is {_named(hint)}, whose items cannot be in a set", "Use tuples and frozensets as items.")
        return Items(hint, container, shape)

    def _table(self, hint: Any, key: Any, value: Any) -> Shape:
        shape = self.shape(key)
        if not shape.is_key:
            self._refuse(
                f"is {_named(hint)}, whose keys cannot be keys of a JSON object",
                "Use str, int, Enum, UUID, date or the like as keys, or a list of pairs.",
            )
        return Table(hint, shape, self.shape(value))

    def _enum(self, cls: type[Enum]) -> Shape:
        values = [member.value for member in cls]
        if issubclass(cls, Flag):
            self._refuse(f"is the Flag {cls.__name__}", "Use a frozenset of a plain Enum.")
        if not values or not (all(type(v) is str for v in values) or all(_is_integer(v) for v in values)):
            self._refuse(
                f"is the Enum {cls.__name__}, whose values are not all str or all int of 64 bits",
                "Give its members such values.",
            )
        return Leaf(cls, enum_rule(cls))

    def _literal(self, hint: Any) -> Shape:
        values = get_args(hint)
        if not all(value is None or type(value) is str or _is_integer(value) for value in values):
            self._refuse(f"is {hint}", "Use str, int and None in a Literal; for others use bool or the Enum itself.")
        return Leaf(hint, literal_rule(values))

    def _model(self, cls: type[Any]) -> Shape:
        self._check_value(cls)
        declared = type_of(cls)
        if declared.version > 1 and self.field:
            self._refuse(
                f"is the pydantic model {cls.__name__} of version {declared.version}, and only the outer one is stored",
                "Make it a frozen dataclass, or upcast it in the outer type.",
            )
        return Model(cls, dumper(cls, declared.name), loader(cls, declared.name))

    def _versioned(self, record: Record) -> Shape:
        if _is_array(record.cls):
            self._refuse(
                f"is {record.cls.__name__} of version {record.declared.version} with array_like=True, "
                "and an array has no place for the version",
                "Drop array_like.",
            )
        return Versioned(record)

    def _record(self, hint: Any) -> Record:
        if hint not in self._records:
            cls: type[Any] = get_origin(hint) or hint
            self._check_value(cls)
            if vars(cls).get("__parameters__") and not get_args(hint):
                self._refuse(f"is the generic {cls.__name__} without parameters", f"Write {cls.__name__}[…].")
            # Known before its fields are read: a recursive type refers to itself.
            self._records[hint] = Record(hint, cls, type_of(cls), _tag(cls))
            self._records[hint].fields = self._fields(hint, cls)
            self._check_array(self._records[hint])
        return self._records[hint]

    def _fields(self, hint: Any, cls: type[Any]) -> list[tuple[Field, Shape]]:
        outer = self.owner, self.field
        self.owner = cls.__name__
        fields = fields_of(hint)
        self.proof = max(self.proof, _proof_for(cls, fields))
        shapes = [(field, self._field(field)) for field in fields]
        self.owner, self.field = outer
        return shapes

    def _field(self, field: Field) -> Shape:
        self.field = field.name
        if not field.name.isidentifier() or iskeyword(field.name):
            self._refuse("has a name that is no Python name", "Rename it.")
        if field.key in (TYPE_KEY, VERSION_KEY):
            self._refuse(f"is stored as {field.key!r}, which is the codec's own key", "Rename it.")
        return self.shape(field.hint)

    def _check_array(self, record: Record) -> None:
        if _is_array(record.cls) and any(s.special_write or s.special_read for s in _reachable(record)):
            raise RegistrationError(
                record.cls.__name__, "has array_like=True and a set or a union of classes in it", "Drop array_like."
            )

    def _choice(self, hint: Any, members: list[Any]) -> Shape:
        if any(unwrapped(member)[0] is Any for member in members):
            return self.shape(Any)
        shapes = [self.shape(member) for member in members]
        records = [shape for shape in shapes if isinstance(shape, (Record, Versioned, Model))]
        # All but one of the records are left out: their tags distinguish them, not their kind.
        self._check_kinds(hint, [shape for shape in shapes if shape not in records[1:]])
        if len(records) < 2:
            return Choice(hint, shapes, TYPE_KEY, {}, {})
        key = _tag_key_of_msgspec(records)
        if key is not None:
            return Choice(hint, shapes, key, {_tag(_class_of(shape))[key]: shape for shape in records}, {})
        return Choice(hint, shapes, TYPE_KEY, *self._tags(hint, records))

    def _tags(self, hint: Any, records: list[Any]) -> tuple[dict[Any, Shape], dict[type[Any], str]]:
        tagged: dict[Any, Shape] = {}
        tags: dict[type[Any], str] = {}
        for shape in records:
            cls = _class_of(shape)
            if _is_array(cls):
                self._refuse(f"is {_named(hint)}, and {cls.__name__} has array_like=True", "Drop array_like.")
            declared = type_of(cls)
            tags[cls] = declared.name
            for name in (declared.name, *declared.aliases):
                if name in tagged:
                    self._refuse(
                        f"is {_named(hint)}, of which two are stored as {name!r}",
                        'Rename one, or give it a name of its own with @message(name="…").',
                    )
                tagged[name] = shape
        return tagged, tags

    def _check_kinds(self, hint: Any, shapes: list[Shape]) -> None:
        seen: dict[str, Shape] = {}
        for shape in shapes:
            for kind in shape.kinds:
                if kind in seen:
                    self._refuse(
                        f"is {_named(hint)}, and {seen[kind].expected} and {shape.expected} are both "
                        f"a JSON {kind}, so that they could not be distinguished",
                        "Use one of them, or put each into a frozen dataclass of its own.",
                    )
                seen[kind] = shape

    def _check_value(self, cls: type[Any]) -> None:
        """Messages and states are values: they do not change, and are equal when their fields are."""
        fix = frozen_fix(cls)
        if fix is not None:
            self._refuse(f"is {cls.__name__}, which can be changed", f"Freeze it: `{fix}`.")
        if cls.__eq__ is object.__eq__ or getattr(getattr(cls, "__struct_config__", None), "eq", True) is False:
            self._refuse(f"is {cls.__name__}, which would not be equal to itself when it comes back", "Drop eq=False.")

    def _refuse_unknown(self, hint: Any) -> NoReturn:
        origin = get_origin(hint) or hint
        instead = _INSTEAD.get(origin, _POSSIBLE)
        self._refuse(f"is {_named(hint)}, which cannot be read back", f"Use {instead}.")

    def _refuse(self, problem: str, fix: str) -> NoReturn:
        raise RegistrationError(self.owner, f"its field `{self.field}` {problem}" if self.field else problem, fix)


def _is_integer(value: Any) -> bool:
    return type(value) is int and INTEGER_MIN <= value <= INTEGER_MAX


def _tag(cls: type[Any]) -> dict[str, Any]:
    config = getattr(cls, "__struct_config__", None)
    return {} if config is None or config.tag is None else {config.tag_field: config.tag}


def _proof_for(cls: type[Any], fields: list[Field]) -> Proof:
    if not all(field.init for field in fields):
        return Proof.FIELDS
    return Proof.BYTES if _has_own_init(cls) or hasattr(cls, "__post_init__") else Proof.CHECK


def _has_own_init(cls: type[Any]) -> bool:
    if not dataclasses.is_dataclass(cls):
        return False
    # A class that writes an __init__ keeps it whatever `init` says; only the origin of the code shows it.
    code = getattr(cls.__init__, "__code__", None)
    return not vars(cls)["__dataclass_params__"].init or code is None or code.co_filename != "<string>"


def _class_of(shape: Any) -> type[Any]:
    return shape.record.cls if isinstance(shape, Versioned) else shape.cls


def _is_array(cls: type[Any]) -> bool:
    return issubclass(cls, Struct) and cls.__struct_config__.array_like


def _tag_key_of_msgspec(records: list[Any]) -> str | None:
    """Return the key of the tags if all are Structs that msgspec can tell apart."""
    if any(isinstance(shape, Versioned) or _is_array(_class_of(shape)) for shape in records):
        return None
    tags = [item for shape in records for item in _tag(_class_of(shape)).items()]
    keys = {key for key, _ in tags}
    return keys.pop() if len(keys) == 1 and len(set(tags)) == len(records) else None


def _named(hint: Any) -> str:
    if isinstance(hint, type):
        return hint.__name__
    return str(hint).replace("typing.", "").replace("collections.abc.", "")

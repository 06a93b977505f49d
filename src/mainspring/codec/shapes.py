"""Shapes: a type hint, read once, as a tree that can test, write and read values.

msgspec does the work wherever it can. A shape takes part in writing only where msgspec's bytes would not be ours (sets
have no order, a union of dataclasses has no tag), and in reading only where msgspec refuses to (the same unions):

    writes, reads    False: msgspec does it alone, for this shape and all below
    write            value → what msgspec can encode
    read             what msgspec decoded without a type → value
    test             the source of an expression that is true for values that come back as they were
    parts            the parts of a value, to find the one that fails
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from msgspec import Raw, ValidationError, convert, json

from mainspring.codec.hints import Field, class_of
from mainspring.codec.leaves import TEST_NAMES, Rule, with_article
from mainspring.codec.limits import SHOWN_CHARACTERS
from mainspring.codec.versions import upcast
from mainspring.core.messages import MessageType
from mainspring.errors import shown

TYPE_KEY: Final = "$type"
VERSION_KEY: Final = "$version"

_encode = json.Encoder().encode

_KINDS: Final[dict[type[Any], tuple[str, ...]]] = {
    type(None): ("null",),
    bool: ("bool",),
    int: ("int", "float"),
    float: ("float",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
}


class Names(Protocol):
    """Gives objects names in generated source, and records a function each.

    >>> from mainspring.codec.checks import Source
    >>> Source().local()
    'x1'
    """

    def bind(self, value: object) -> str: ...
    def local(self) -> str: ...
    def function(self, record: Record) -> str: ...


class Shape:
    """What all shapes share. As it stands, msgspec does everything.

    >>> Shape(int, "an int", "Use int(…).", ("int",)).read(3)
    3
    """

    special_write = False
    special_read = False
    hashable = True
    is_key = False

    def __init__(self, hint: Any, expected: str, fix: str, kinds: tuple[str, ...]) -> None:
        self.hint = hint
        self.expected = expected
        self.fix = fix
        self.kinds = kinds
        self.writes = False
        self.reads = False

    def below(self) -> list[Shape]:
        return []

    def test(self, v: str, names: Names) -> str:
        raise NotImplementedError

    def is_itself(self, value: Any) -> bool:
        """Return True if the value is right apart from its parts."""
        raise NotImplementedError

    def parts(self, value: Any) -> Iterator[tuple[str, Shape, Any]]:
        yield from ()

    def write(self, value: Any) -> Any:
        return value

    def read(self, value: Any) -> Any:
        return convert(value, self.hint, str_keys=True)


class Leaf(Shape):
    """A value without parts.

    >>> from mainspring.codec.leaves import RULES
    >>> Leaf(str, RULES[str]).is_itself("a"), Leaf(str, RULES[str]).is_itself(1)
    (True, False)
    """

    def __init__(self, hint: Any, rule: Rule) -> None:
        super().__init__(hint, rule.expected, rule.fix, rule.kinds)
        self.rule = rule
        self.is_key = rule.is_key
        self._is_itself = eval(  # noqa: S307  a rule's own text, with nothing from outside in it
            f"lambda v: {rule.test.format(v='v', bound='bound')}", TEST_NAMES | {"bound": rule.bound}
        )

    def test(self, v: str, names: Names) -> str:
        return self.rule.test.format(v=v, bound=names.bind(self.rule.bound))

    def is_itself(self, value: Any) -> bool:
        return self._is_itself(value)


class Items(Shape):
    """A list, set, frozenset, or a tuple of any length.

    >>> from mainspring.codec.leaves import RULES
    >>> Items(set[int], set, Leaf(int, RULES[int])).write({3, 1, 2})
    [1, 2, 3]
    """

    def __init__(self, hint: Any, container: type[Any], item: Shape) -> None:
        super().__init__(
            hint, with_article(container.__name__), f"Convert it with {container.__name__}(…).", ("array",)
        )
        self.container = container
        self.item = item
        self.special_write = issubclass(container, (set, frozenset))
        self.hashable = container is frozenset or (container is tuple and item.hashable)
        self._natural = item.hint in (int, str)

    def below(self) -> list[Shape]:
        return [self.item]

    def test(self, v: str, names: Names) -> str:
        of_type = f"type({v}) is {names.bind(self.container)}"
        if isinstance(self.item, Record):
            return f"{of_type} and all(map({names.function(self.item)}, {v}))"
        x = names.local()
        return f"{of_type} and all([{self.item.test(x, names)} for {x} in {v}])"

    def is_itself(self, value: Any) -> bool:
        return type(value) is self.container

    def parts(self, value: Any) -> Iterator[tuple[str, Shape, Any]]:
        for index, item in enumerate(value):
            yield f"[{index}]", self.item, item

    def write(self, value: Any) -> Any:
        written = [self.item.write(item) for item in value] if self.item.writes else value
        if self.special_write:
            return sorted(written) if self._natural else sorted(written, key=_encode)
        return written

    def read(self, value: Any) -> Any:
        if not self.reads:
            return super().read(value)
        _expect(value, list, "array")
        return self.container([_at(f"[{index}]", self.item.read, item) for index, item in enumerate(value)])


class Fixed(Shape):
    """A tuple of fixed length, or a NamedTuple.

    >>> from mainspring.codec.leaves import RULES
    >>> Fixed(tuple[int], tuple, [Leaf(int, RULES[int])]).is_itself((1, 2))
    False
    """

    def __init__(self, hint: Any, container: type[Any], items: list[Shape]) -> None:
        expected = with_article(container.__name__)
        super().__init__(hint, f"{expected} of {len(items)}", "Pass exactly these.", ("array",))
        self.container = container
        self.items = items
        self.hashable = all(item.hashable for item in items)

    def below(self) -> list[Shape]:
        return self.items

    def test(self, v: str, names: Names) -> str:
        tests = [f"type({v}) is {names.bind(self.container)}", f"len({v}) == {len(self.items)}"]
        tests += [item.test(f"{v}[{index}]", names) for index, item in enumerate(self.items)]
        return " and ".join(tests)

    def is_itself(self, value: Any) -> bool:
        return type(value) is self.container and len(value) == len(self.items)

    def parts(self, value: Any) -> Iterator[tuple[str, Shape, Any]]:
        for index, (shape, item) in enumerate(zip(self.items, value, strict=True)):
            yield f"[{index}]", shape, item

    def write(self, value: Any) -> Any:
        if not self.writes:
            return value
        return [shape.write(item) for shape, item in zip(self.items, value, strict=True)]

    def read(self, value: Any) -> Any:
        if not self.reads:
            return super().read(value)
        _expect(value, list, "array")
        if len(value) != len(self.items):
            raise ValidationError(f"Expected `array` of length {len(self.items)}, got {len(value)}")
        read = [_at(f"[{i}]", shape.read, item) for i, (shape, item) in enumerate(zip(self.items, value, strict=True))]
        make: Any = self.container
        return tuple(read) if make is tuple else make(*read)


class Table(Shape):
    """A dict. Its order is kept.

    >>> from mainspring.codec.leaves import RULES
    >>> Table(dict[str, int], Leaf(str, RULES[str]), Leaf(int, RULES[int])).expected
    'a dict'
    """

    hashable = False

    def __init__(self, hint: Any, key: Shape, value: Shape) -> None:
        super().__init__(hint, "a dict", "Convert it with dict(…).", ("object",))
        self.key = key
        self.value = value

    def below(self) -> list[Shape]:
        return [self.key, self.value]

    def test(self, v: str, names: Names) -> str:
        k, x = names.local(), names.local()
        tests = f"{self.key.test(k, names)} and {self.value.test(x, names)}"
        return f"type({v}) is dict and all([{tests} for {k}, {x} in {v}.items()])"

    def is_itself(self, value: Any) -> bool:
        return type(value) is dict

    def parts(self, value: Any) -> Iterator[tuple[str, Shape, Any]]:
        for key, item in value.items():
            yield f"'s key {shown(key, SHOWN_CHARACTERS)}", self.key, key
            yield f"[{shown(key, SHOWN_CHARACTERS)}]", self.value, item

    def write(self, value: Any) -> Any:
        return {key: self.value.write(item) for key, item in value.items()} if self.writes else value

    def read(self, value: Any) -> Any:
        if not self.reads:
            return super().read(value)
        _expect(value, dict, "object")
        keys = convert(dict.fromkeys(value), dict[self.key.hint, None], str_keys=True)
        return {key: _at(f"[{key!r}]", self.value.read, item) for key, item in zip(keys, value.values(), strict=True)}


class Record(Shape):
    """A dataclass or a Struct.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Empty: ...
    >>> Record(Empty, Empty, MessageType("Empty"), {}).as_object(Empty())
    {}
    """

    def __init__(self, hint: Any, cls: type[Any], declared: MessageType, tag: dict[str, Any]) -> None:
        config = getattr(cls, "__struct_config__", None)
        kind = "object" if config is None or not config.array_like else "array"
        super().__init__(hint, with_article(cls.__name__), f"Pass {with_article(cls.__name__)} itself.", (kind,))
        self.cls = cls
        self.declared = declared
        self.tag = tag
        self.fields: list[tuple[Field, Shape]] = []

    def below(self) -> list[Shape]:
        return [shape for _, shape in self.fields]

    def test(self, v: str, names: Names) -> str:
        return f"{names.function(self)}({v})"

    def is_itself(self, value: Any) -> bool:
        return type(value) is self.cls

    def parts(self, value: Any) -> Iterator[tuple[str, Shape, Any]]:
        for field, shape in self.fields:
            yield f".{field.name}", shape, getattr(value, field.name)

    def write(self, value: Any) -> Any:
        return self.as_object(value) if self.writes else value

    def as_object(self, value: Any) -> dict[str, Any]:
        written = {field.key: shape.write(getattr(value, field.name)) for field, shape in self.fields}
        return self.tag | written if self.tag else written

    def read(self, value: Any) -> Any:
        if not self.reads:
            return super().read(value)
        _expect(value, dict, "object")
        made = {
            field.name: _at(f".{field.name}", shape.read, value[field.key])
            for field, shape in self.fields
            if field.init and field.key in value
        }
        missing = [field.key for field, _ in self.fields if field.required and field.init and field.name not in made]
        if missing:
            raise ValidationError(f"Object missing required field `{missing[0]}`")
        return self.cls(**made)


class Versioned(Shape):
    """A record of version 2 or more within another. Its version stands beside its fields, since no column holds it.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Empty: ...
    >>> Versioned(Record(Empty, Empty, MessageType("Empty", 2), {})).write(Empty())
    {'$version': 2}
    """

    special_write = True
    special_read = True

    def __init__(self, record: Record) -> None:
        super().__init__(record.hint, record.expected, record.fix, record.kinds)
        self.record = record

    def below(self) -> list[Shape]:
        return [self.record]

    def test(self, v: str, names: Names) -> str:
        return self.record.test(v, names)

    def is_itself(self, value: Any) -> bool:
        return self.record.is_itself(value)

    def parts(self, value: Any) -> Iterator[tuple[str, Shape, Any]]:
        return self.record.parts(value)

    def write(self, value: Any) -> Any:
        return self.as_object(value)

    def as_object(self, value: Any) -> dict[str, Any]:
        return {VERSION_KEY: self.record.declared.version} | self.record.as_object(value)

    def read(self, value: Any) -> Any:
        _expect(value, dict, "object")
        body = {key: item for key, item in value.items() if key != VERSION_KEY}
        return self.record.read(upcast(self.record.declared, value.get(VERSION_KEY, 1), body))


class Model(Shape):
    """A pydantic model. It writes and reads itself.

    >>> Model(int, dump=lambda value: b"3", load=int).read(3)
    3
    """

    special_write = True
    special_read = True

    def __init__(self, cls: type[Any], dump: Callable[[Any], bytes], load: Callable[[bytes], Any]) -> None:
        super().__init__(cls, with_article(cls.__name__), f"Pass {with_article(cls.__name__)} itself.", ("object",))
        self.cls = cls
        self.dump = dump
        self.load = load

    def test(self, v: str, names: Names) -> str:
        return f"type({v}) is {names.bind(self.cls)}"

    def is_itself(self, value: Any) -> bool:
        return type(value) is self.cls

    def write(self, value: Any) -> Any:
        return Raw(self.dump(value))

    def as_object(self, value: Any) -> dict[str, Any]:
        return json.decode(self.dump(value))

    def read(self, value: Any) -> Any:
        return self.load(_encode(value))


class Choice(Shape):
    """A union. With two or more records in it, each is written with its type's name under "$type".

    `tagged` finds a member by its tag under `tag_key`; `tags` has the tags that are ours to write, by class.

    >>> from mainspring.codec.leaves import RULES
    >>> Choice(int | str, [Leaf(int, RULES[int]), Leaf(str, RULES[str])], TYPE_KEY, {}, {}).expected
    'an int of at most 64 bits or a str'
    """

    def __init__(
        self, hint: Any, members: list[Shape], tag_key: str, tagged: dict[Any, Shape], tags: dict[type[Any], str]
    ) -> None:
        kinds = tuple(kind for member in members for kind in member.kinds)
        super().__init__(hint, " or ".join(member.expected for member in members), "Pass one of these.", kinds)
        self.members = members
        self.special_write = self.special_read = bool(tags)
        self.hashable = all(member.hashable for member in members)
        self._tag_key = tag_key
        self._tagged = tagged
        self._tags = tags
        self._by_class: dict[type[Any], Any] = {cls: tagged[tag] for cls, tag in tags.items()}
        self._by_kind = {kind: member for member in members for kind in member.kinds}

    def below(self) -> list[Shape]:
        return self.members

    def test(self, v: str, names: Names) -> str:
        return "(" + " or ".join(f"({member.test(v, names)})" for member in self.members) + ")"

    def is_itself(self, value: Any) -> bool:
        return any(member.is_itself(value) for member in self.members)

    def parts(self, value: Any) -> Iterator[tuple[str, Shape, Any]]:
        yield "", self._member_of(value), value

    def _member_of(self, value: Any) -> Shape:
        return next(member for member in self.members if member.is_itself(value))

    def write(self, value: Any) -> Any:
        cls = class_of(value)
        if cls in self._tags:
            return {TYPE_KEY: self._tags[cls]} | self._by_class[cls].as_object(value)
        return self._member_of(value).write(value) if self.writes else value

    def read(self, value: Any) -> Any:
        if not self.reads:
            return super().read(value)
        cls = class_of(value)
        if self._tagged and cls is dict:
            return self._read_tagged(value)
        for kind in _KINDS[cls]:
            if kind in self._by_kind:
                return self._by_kind[kind].read(value)
        raise ValidationError(f"Expected {self.expected}, got {shown(value, 80)}")

    def _read_tagged(self, value: dict[str, Any]) -> Any:
        tag = value.get(self._tag_key)
        member = self._tagged.get(tag) if isinstance(tag, (str, int)) else None
        if member is None:
            wrong = f"Object has no `{self._tag_key}`" if tag is None else f"Unknown `{self._tag_key}` {shown(tag, 80)}"
            raise ValidationError(f"{wrong}, which must be one of {', '.join(map(str, self._tagged))}")
        return member.read({key: item for key, item in value.items() if key != TYPE_KEY})


def _expect(value: Any, kind: type[Any], name: str) -> None:
    if type(value) is not kind:
        raise ValidationError(f"Expected `{name}`, got {shown(value, 80)}")


def _at(place: str, read: Callable[[Any], Any], value: Any) -> Any:
    """Read a part; an error names its place."""
    try:
        return read(value)
    except ValidationError as error:
        raise ValidationError(f"{place}: {error}") from None

"""Compiles shapes into one fast function: True if a value will come back from its bytes as it was.

The function is generated source, as the dataclasses module does it: for a message of 200 bytes it takes 1 µs, where
writing, reading back and comparing takes 2.5. It only says yes or no; what exactly is wrong is then found slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mainspring.codec.leaves import TEST_NAMES
from mainspring.codec.limits import NESTING_LEVELS, SHOWN_CHARACTERS
from mainspring.codec.shapes import Record, Shape
from mainspring.errors import shown

Check: TypeAlias = Callable[[Any], bool]
Fault: TypeAlias = tuple[str, str]


def compile_check(shape: Shape) -> Check:
    """Return a function that is true for the values that come back as they were.

    >>> from mainspring.codec.leaves import RULES
    >>> from mainspring.codec.shapes import Leaf
    >>> check = compile_check(Leaf(int, RULES[int]))
    >>> check(1), check(True), check(2**64)
    (True, False, False)
    """
    source = Source()
    if isinstance(shape, Record):
        return source.compiled(source.function(shape))
    source.functions["check"] = f"def check(v):\n    return {shape.test('v', source)}"
    return source.compiled("check")


class Source:
    """The names and functions of one generated module.

    >>> source = Source()
    >>> source.namespace[source.bind(int)]
    <class 'int'>
    """

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = dict(TEST_NAMES)
        self.functions: dict[str, str] = {}
        self.names: dict[int, str] = {}
        self._locals = 0

    def bind(self, value: object) -> str:
        name = f"bound_{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def local(self) -> str:
        self._locals += 1
        return f"x{self._locals}"

    def function(self, record: Record) -> str:
        name = self.names.get(id(record))
        if name is None:
            # Named before it is written: a recursive type calls itself.
            name = self.names[id(record)] = f"check_{len(self.names)}"
            self.functions[name] = self._written(name, record)
        return name

    def _written(self, name: str, record: Record) -> str:
        lines = [f"def {name}(v):", f"    if type(v) is not {self.bind(record.cls)}: return False"]
        tests: list[str] = []
        for field, shape in record.fields:
            part = self.local()
            lines.append(f"    {part} = v.{field.name}")
            tests.append(shape.test(part, self))
        return "\n".join([*lines, f"    return {' and '.join(tests) or True}"])

    def compiled(self, name: str) -> Check:
        exec("\n".join(self.functions.values()), self.namespace)  # noqa: S102  made of the author's own classes, never of data
        return self.namespace[name]


def find_fault(shape: Shape, value: Any) -> Fault:
    """Return what is wrong with a value that did not pass its check, and what to do about it.

    >>> from mainspring.codec.leaves import RULES
    >>> from mainspring.codec.shapes import Items, Leaf
    >>> find_fault(Items(list[str], list, Leaf(str, RULES[str])), ["a", 1])
    ('[1] must be a str and is int 1', 'Convert it with str(…).')
    """
    try:
        found = _fault(shape, value, "")
    except RecursionError:
        found = None
    return found or (f"nests deeper than {NESTING_LEVELS} levels", "Keep references by id instead of whole objects.")


def _fault(shape: Shape, value: Any, place: str) -> Fault | None:
    if not shape.is_itself(value):
        where = place.removeprefix(".") or "the value"
        kind = type(value).__name__
        return f"{where} must be {shape.expected} and is {kind} {shown(value, SHOWN_CHARACTERS)}", shape.fix
    for name, part, item in shape.parts(value):
        fault = _fault(part, item, place + name)
        if fault is not None:
            return fault
    return None

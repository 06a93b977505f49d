"""The registry of types: a name for each, and what it takes to write and read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from mainspring.codec.entries import Entry, entry_for
from mainspring.codec.limits import BODY_LIMIT_BYTES, STATE_LIMIT_BYTES, WARN_FRACTION
from mainspring.codec.strict import scan
from mainspring.codec.versions import check_version
from mainspring.core.definition import definition_of
from mainspring.core.messages import type_of
from mainspring.core.workflow import Workflow
from mainspring.errors import (
    ERASED_TYPE,
    BodyTooLargeError,
    CodecError,
    DecodeError,
    EncodeError,
    ErasedError,
    NewerTypeError,
    RegistrationError,
    UnknownTypeError,
    shown,
)
from mainspring.logs import logger

_log = logger("mainspring.codec")


class Encoded(Struct, frozen=True, gc=False):
    """A value as it is stored: the name and version of its type beside the exact JSON bytes of its body."""

    name: str
    version: int
    body: bytes


ReadOlder: TypeAlias = Callable[[Callable[[Any, bytes], Any], str, Any, bytes], Any]


class Codec:
    """Writes values as JSON and reads them back as what they were, or refuses to write them.

    A codec is one space of names. Messages share one; each workflow's states have one of their own, for every workflow
    may have a state that is called Waiting.

    >>> from mainspring.testing.samples import Count, Counter, Counted
    >>> codec = Codec()
    >>> codec.register_workflow(Counter)
    >>> codec.encode(Count("c-1"))
    Encoded(name='Count', version=1, body=b'{"counter":"c-1"}')
    >>> codec.decode("Count", 1, b'{"counter":"c-1"}')
    Count(counter='c-1')
    >>> codec.states(Counter).encode(Counted(2)).body
    b'{"times":2}'
    """

    def __init__(self, limit_bytes: int = BODY_LIMIT_BYTES, older: ReadOlder | None = None) -> None:
        self._limit_bytes = limit_bytes
        self._warn_bytes = limit_bytes // WARN_FRACTION
        self._warned: set[type[Any]] = set()
        self._by_type: dict[type[Any], Entry] = {}
        self._by_name: dict[str, Entry] = {}
        self._states: dict[type[Any], Codec] = {}
        # How a body of an older version is read: upcasters are authors' code, which an engine calls with care.
        self._older = older or _read_older

    def register(self, *types: type[Any]) -> None:
        """Prepare types for writing and reading. Doing so twice does no harm.

        >>> from mainspring.testing.samples import Count
        >>> codec = Codec()
        >>> codec.register(Count)
        >>> codec.knows("Count")
        True
        """
        for cls in types:
            if not isinstance(cls, type):
                raise RegistrationError(shown(cls, 80), "is not a class of its own", "Subclass it, and register that.")
            if cls not in self._by_type:
                self._add(cls)

    def register_workflow(self, workflow: type[Workflow[Any, Any, Any]]) -> None:
        """Register the inputs and outputs of a workflow here, and its states in a codec of their own.

        >>> from mainspring.testing.samples import Counter
        >>> codec = Codec()
        >>> codec.register_workflow(Counter)
        >>> codec.knows("CountedThrice"), codec.knows("Counted"), codec.states(Counter).knows("Counted")
        (True, False, True)
        """
        definition = definition_of(workflow)
        self.register(*definition.inputs, *definition.outputs)
        if workflow not in self._states:
            states = Codec(STATE_LIMIT_BYTES)
            states.register(*definition.states)
            self._states[workflow] = states

    def states(self, workflow: type[Workflow[Any, Any, Any]]) -> Codec:
        """Return the codec for the states of a registered workflow.

        >>> from mainspring.testing.samples import Counter
        >>> codec = Codec()
        >>> codec.register_workflow(Counter)
        >>> codec.states(Counter).decode("Counted", 1, b'{"times":2}')
        Counted(times=2)
        """
        found = self._states.get(workflow)
        if found is None:
            raise UnknownTypeError(
                workflow.__name__, "is a workflow that is not registered", "Call register_workflow with it first."
            )
        return found

    def knows(self, name: str) -> bool:
        """Return True if a type of that name, or formerly of that name, is registered.

        >>> Codec().knows("PlaceOrder")
        False
        """
        return name in self._by_name or name.startswith(ERASED_TYPE)

    def reads(self, name: str, version: int) -> bool:
        """Return True if a type of that name is registered, and at that version or a later one.

        >>> from mainspring.testing.samples import Count
        >>> codec = Codec()
        >>> codec.register(Count)
        >>> codec.reads("Count", 1), codec.reads("Count", 2)
        (True, False)
        """
        entry = self._by_name.get(name)
        return entry.version >= version if entry is not None else name.startswith(ERASED_TYPE)

    def versions(self) -> dict[str, int]:
        """Return the names of all that can be read, former ones too, each with the newest version.

        >>> Codec().versions()
        {}
        """
        return {name: entry.version for name, entry in self._by_name.items()}

    def classes(self) -> dict[str, type[Any]]:
        """Return all classes by the names that they have or have had.

        >>> Codec().classes()
        {}
        """
        return {name: entry.cls for name, entry in self._by_name.items()}

    def encode(self, value: object) -> Encoded:
        """Write a value, or raise an EncodeError if it would not come back as it is.

        >>> from mainspring.testing.samples import Count
        >>> codec = Codec()
        >>> codec.register(Count)
        >>> codec.encode(Count(7))
        Traceback (most recent call last):
        mainspring.errors.encoding.EncodeError: Count: counter must be a str and is int 7. Convert it with str(…).
        """
        entry = self._by_type.get(type(value))
        if entry is None:
            raise self._unknown_type(type(value))
        body = entry.encode(value)
        if len(body) >= self._warn_bytes:
            self._weigh(entry, len(body))
        return Encoded(entry.name, entry.version, body)

    def decode(self, name: str, version: int, body: bytes) -> Any:
        """Read what encode wrote, now or long ago.

        >>> from mainspring.testing.samples import Count
        >>> codec = Codec()
        >>> codec.register(Count)
        >>> codec.decode("Count", 1, b'{"counter":"c-1"}')
        Count(counter='c-1')
        """
        entry = self._by_name.get(name)
        if entry is None:
            raise self._unknown_name(name)
        if version == entry.version:
            return entry.decode(body)
        check_version(entry.declared, version)
        return self._older(entry.decode_older, name, version, body)

    def decode_outside(self, name: str, version: int, body: bytes) -> Any:
        """Read bytes from another system, and refuse whatever is doubtful in them.

        >>> from mainspring.testing.samples import Count
        >>> codec = Codec()
        >>> codec.register(Count)
        >>> codec.decode_outside("Count", 1, b'{"counter":"c-1","counter":"c-2"}')
        Traceback (most recent call last):
        mainspring.errors.encoding.DecodeError: Count: the body has the key 'counter' twice. Send every key once.
        """
        entry = self._by_name.get(name)
        if entry is None:
            raise self._unknown_name(name)
        if len(body) > self._limit_bytes:
            raise self._too_large(entry, len(body))
        scan(entry.name, body)
        value = self.decode(name, version, body)
        try:
            entry.encode(value)
        except EncodeError as error:
            raise DecodeError(entry.name, error.problem, error.fix) from None
        return value

    def _add(self, cls: type[Any]) -> None:
        entry = entry_for(cls)
        names = (entry.name, *entry.declared.aliases)
        for name in names:
            other = self._by_name.get(name)
            if other is not None:
                raise RegistrationError(
                    cls.__name__,
                    f"{_where(cls)} and {_where(other.cls)} would both be stored as {name!r}",
                    'Rename one, or give it a name of its own with @message(name="…").',
                )
        self._by_type[cls] = entry
        self._by_name.update(dict.fromkeys(names, entry))

    def _weigh(self, entry: Entry, size_bytes: int) -> None:
        if size_bytes > self._limit_bytes:
            raise self._too_large(entry, size_bytes)
        if entry.cls not in self._warned:
            self._warned.add(entry.cls)
            _log.warning(
                "%s: a body has %s bytes; the limit is %s. Keep large data elsewhere and its address in the message.",
                entry.name,
                f"{size_bytes:,}",
                f"{self._limit_bytes:,}",
            )

    def _too_large(self, entry: Entry, size_bytes: int) -> BodyTooLargeError:
        return BodyTooLargeError(
            entry.name,
            f"a body has {size_bytes:,} bytes; the limit is {self._limit_bytes:,}",
            "Keep large data elsewhere and its address in the message.",
        )

    def _unknown_type(self, cls: type[Any]) -> UnknownTypeError:
        return UnknownTypeError(
            type_of(cls).name,
            f"{_where(cls)} is not registered",
            "Add it to the type parameters of a workflow, or register it.",
        )

    def _unknown_name(self, name: object) -> CodecError:
        if isinstance(name, str) and name.startswith(ERASED_TYPE):
            return ErasedError(name.removeprefix(ERASED_TYPE))
        return NewerTypeError(
            shown(name, 80),
            "no type of that name is registered",
            "Register it; if it was renamed, give its class @message(aliases=[…]) with the old name.",
        )


def _read_older(decode: Callable[[Any, bytes], Any], _: str, version: Any, body: bytes) -> Any:
    return decode(version, body)


def _where(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"

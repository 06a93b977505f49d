"""A projection as it was declared: a function that folds the feed, and how."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Any, Final, cast, get_type_hints

from msgspec import Struct

from mainspring.codec import Codec
from mainspring.codec.limits import STATE_LIMIT_BYTES
from mainspring.core.definition import definition_of
from mainspring.core.feed import FeedEntry
from mainspring.core.type_parameters import union_members
from mainspring.core.workflow import Workflow
from mainspring.errors import ErasedError, WiringError
from mainspring.port.loans import Connection
from mainspring.port.projections import Document

NAME_CHARACTERS: Final = 60
KEY_CHARACTERS: Final = 500
TRANSACTION: Final = timedelta(seconds=5)
LONGEST_TRANSACTION: Final = timedelta(seconds=30)
TABLE: Final = "{table}"

Reset = Callable[[Connection], Awaitable[None]]


class ProjectionOptions(Struct, frozen=True):
    """How a projection is run.

    >>> ProjectionOptions().version
    1
    """

    name: str | None = None
    workflows: Iterable[type[Workflow[Any, Any, Any]] | str] | None = None
    version: int = 1
    key: Callable[[FeedEntry], str | None] | None = None
    create: str | None = None
    reset: Reset | None = None
    transaction: timedelta = TRANSACTION


class Projection:
    """A registered projection. `kept` says that mainspring keeps its documents; else it writes to tables of its own."""

    def __init__(self, function: Callable[..., Any], options: ProjectionOptions) -> None:
        self.function = function
        self.options = options
        self.name = options.name or getattr(function, "__name__", type(function).__name__)
        self.version = options.version
        self.workflows = None if options.workflows is None else frozenset(map(_workflow_name, options.workflows))
        self.kept = options.key is not None
        self.limit_seconds = options.transaction.total_seconds()
        self._codec = Codec(STATE_LIMIT_BYTES)
        _check(self)
        if self.kept:
            self._codec.register(*_document_types(function, self.name))

    @property
    def rebuildable(self) -> bool:
        """Whether it can be filled anew."""
        return self.kept or self.options.create is not None or self.options.reset is not None

    def table(self, generation: int) -> str:
        """Return the name of the table that a generation is written to, where mainspring creates one."""
        return f"{self.name}_{generation}"

    def key_of(self, entry: FeedEntry) -> str | None:
        """Return the key of the document that an entry changes, or None if it changes none."""
        if self.options.key is None:
            return None
        key = cast("Any", self.options.key(entry))
        if key is None or (isinstance(key, str) and 0 < len(key) <= KEY_CHARACTERS and "\0" not in key):
            return key
        raise WiringError(
            f"The key of {self.name} is {key!r:.100}",
            f"Return a text of 1 to {KEY_CHARACTERS} characters, or None for an entry that changes nothing.",
        )

    def folded(self, document: Any, entry: FeedEntry) -> Any:
        """Return the document after an entry."""
        return self.function(document, entry)

    def read(self, document: Document) -> Any:
        """Return a stored document as its class; None if its key was destroyed, as in a fold of what can be read."""
        try:
            return self._codec.decode(document.type or "", document.type_version, document.body or b"")
        except ErasedError:
            return None

    def written(self, key: str, document: Any) -> Document:
        """Return a document as it is stored; None is one that is to be removed."""
        if document is None:
            return Document(key)
        encoded = self._codec.encode(document)
        return Document(key, encoded.name, encoded.version, encoded.body)

    async def write(self, entry: FeedEntry, connection: Connection, generation: int) -> None:
        """Let the function write to its own tables."""
        if self.options.create is None:
            await self.function(entry, connection)
        else:
            await self.function(entry, connection, self.table(generation))


def _workflow_name(workflow: Any) -> str:
    if isinstance(workflow, str):
        return workflow
    if isinstance(workflow, type) and issubclass(workflow, Workflow):
        return definition_of(cast("type[Workflow[Any, Any, Any]]", workflow)).name
    raise WiringError(f"{workflow!r} is not a workflow", "Name workflows by their classes, or by their names.")


def _document_types(function: Callable[..., Any], name: str) -> list[type[Any]]:
    try:
        hint = get_type_hints(inspect.unwrap(function)).get("return")
    except NameError as error:
        raise WiringError(
            f"The annotations of {name} cannot be read: {error}", "Import the names at run time."
        ) from None
    members = [member for member in union_members(hint) if member not in (type(None), None)]
    if not members or Any in members:
        raise WiringError(
            f"{name} does not say which documents it keeps",
            f"Annotate it, as in `def {name}(document: OpenOrder | None, entry: FeedEntry) -> OpenOrder | None`.",
        )
    for member in members:
        if not isinstance(member, type):
            raise WiringError(
                f"{name} keeps documents of {member}, which is no class",
                "Use a frozen dataclass, Struct or pydantic model with such a field; or a plain type, as int or str.",
            )
    return members


def _check(projection: Projection) -> None:
    """Refuse now what would stop the projection at its first event."""
    name, options = projection.name, projection.options
    problem = _name_problem(projection)
    if problem is not None:
        raise WiringError(
            f"A projection is named {name!r}, which {problem}", 'Name it: @app.projections.add(name="orders").'
        )
    if type(options.version) is not int or options.version < 1:
        raise WiringError(f"{name} has version={options.version!r}", "Use a whole number from 1, and count it up.")
    if type(options.transaction) is not timedelta or not timedelta(0) < options.transaction <= LONGEST_TRANSACTION:
        advice = f"Use a timedelta of at most {LONGEST_TRANSACTION.seconds} s: others wait for a transaction."
        raise WiringError(f"{name} has transaction={options.transaction!r}", advice)
    if projection.kept and (options.create is not None or options.reset is not None):
        raise WiringError(f"{name} has a key, so mainspring keeps its documents", "Leave `create` and `reset` out.")
    if options.create is not None and TABLE not in options.create:
        advice = f'Write {TABLE} where its name stands, as in "CREATE TABLE {TABLE} (id TEXT PRIMARY KEY)".'
        raise WiringError(f"The table that {name} creates would be the same in each generation", advice)
    if options.create is not None and options.reset is not None:
        raise WiringError(f"{name} has both `create` and `reset`", "A new table needs no reset: leave it out.")
    if options.version > 1 and not projection.rebuildable:
        advice = "Give it `create`, or `reset`; or leave the version as it is, and it goes on where it stands."
        raise WiringError(f"{name} has a new version, and cannot be filled anew", advice)
    _check_parameters(projection)


def _name_problem(projection: Projection) -> str | None:
    name = cast("Any", projection.name)
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARACTERS:
        return f"is not a text of 1 to {NAME_CHARACTERS} characters"
    if not name.isprintable() or name == "<lambda>":
        return "cannot be shown"
    if projection.options.create is not None and not (name.isidentifier() and name.isascii() and name.islower()):
        return "is no name for a table: use small letters, digits and _"
    return None


def _check_parameters(projection: Projection) -> None:
    name, function = projection.name, inspect.unwrap(projection.function)
    if projection.kept:
        shape, is_async, count = f"def {name}(document, entry)", False, 2
    elif projection.options.create is None:
        shape, is_async, count = f"async def {name}(entry, connection)", True, 2
    else:
        shape, is_async, count = f"async def {name}(entry, connection, table)", True, 3
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    fits = len(required) == count and all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in required)
    if inspect.iscoroutinefunction(function) != is_async or not fits:
        hint = "" if projection.kept else " With `key` it folds documents that mainspring keeps."
        raise WiringError(f"{name} is not written as its options say", f"Write it as `{shape}`.{hint}")

"""`module:app` to a connected app, and what people type to an instance."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import logging
import os
import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import click

from mainspring.app import Mainspring
from mainspring.app.instance import Instance
from mainspring.app.internals import internals_of
from mainspring.cli.failures import DEBUG, MisuseError, NotFoundError, debugging
from mainspring.cli.options import app_option
from mainspring.engine.operations.pauses import FLEET
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import DamagedRecordError, InstancePurgedError, MainspringError, NoSuchInstanceError, visible
from mainspring.port.records import Loaded, Ref

ATTRIBUTE: Final = "app"

_PASSWORD: Final = re.compile(r"(password=)[^&]*", re.IGNORECASE)

T = TypeVar("T")


def load_app(address: str) -> Mainspring:
    """Return the app that `module:app` names, imported from the current directory as Python itself would.

    >>> load_app("mainspring.testing.samples:Counter")
    Traceback (most recent call last):
    mainspring.cli.failures.MisuseError: mainspring.testing.samples:Counter is a type, not a Mainspring.
    """
    module_name, _, attribute = address.partition(":")
    attribute = attribute or ATTRIBUTE
    found: Any = _module(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise MisuseError(f"{module_name} has no {attribute}.{_hint(module_name, found)}")
        found = getattr(found, part)
    if not isinstance(found, Mainspring):
        raise MisuseError(f"{module_name}:{attribute} is a {type(found).__name__}, not a Mainspring.")
    return found


def _hint(module_name: str, module: Any) -> str:
    """Return where else the app may be: under another name, or in a package's module `app`."""
    apps = sorted(name for name, value in _names(module).items() if isinstance(value, Mainspring))
    if apps:
        return f" It has {', '.join(f'{module_name}:{name}' for name in apps)}."
    beside = any((Path(folder) / f"{ATTRIBUTE}.py").is_file() for folder in getattr(module, "__path__", ()))
    return f" Did you mean {module_name}.{ATTRIBUTE}:{ATTRIBUTE}?" if beside else ""


def _names(value: Any) -> dict[str, Any]:
    return getattr(value, "__dict__", {})


def _module(name: str) -> Any:
    if not all(part.isidentifier() for part in name.split(".")):
        raise MisuseError(f"{name!r} is not the name of a module. Write module:app, as in shop:app.")
    if name.endswith(".py"):
        raise MisuseError(
            f"{name} is a file, and a module is named without .py: {name.removesuffix('.py')}:{ATTRIBUTE}."
        )
    here = os.getcwd()  # noqa: PTH109  sys.path holds strings
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        # What a module prints while it is imported must not end up among the JSON.
        with contextlib.redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise MisuseError(
                f"There is no module {error.name} in {here}. Go to the directory in which it lies."
            ) from None
        raise _broken(name, error) from None
    except MainspringError:
        raise
    except Exception as error:  # noqa: BLE001  a module may raise anything
        raise _broken(name, error) from None


def _broken(name: str, error: Exception) -> Exception:
    """Return why a module cannot be imported, with the line at fault."""
    if debugging():
        return error
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename}, line {frame.lineno}"
    return MisuseError(
        f"{name} cannot be imported: {type(error).__name__}: {error} ({place}). {DEBUG}=1 shows the traceback."
    )


def with_app(address: str, use: Callable[[Mainspring], Awaitable[T]], seconds: float | None = None) -> T:
    """Connect to an app, without carrying out any of its work, and use it; for so many seconds at most."""
    # Not inside the loop: a module may run one of its own while it is imported.
    app = load_app(address)
    if internals_of(app).url.startswith("memory:"):
        click.echo(
            f"{address} keeps everything in its own process's memory: nothing of it can be seen from here. "
            'Give it a file: Mainspring("sqlite:///app.db").',
            err=True,
        )

    async def connected() -> T:
        try:
            async with asyncio.timeout(seconds):
                await app.start(work=False)
                return await use(app)
        finally:
            await app.stop()

    with _short_logs():
        return asyncio.run(connected())


def connected(command: Callable[..., Awaitable[T]]) -> Callable[..., T]:
    """Make a command of a function whose first parameter is an app: --app says which, and it is connected."""

    @app_option
    @functools.wraps(command)
    def run(address: str, **options: Any) -> T:
        return with_app(address, lambda app: command(app, **options))

    return run


@contextlib.contextmanager
def _short_logs() -> Generator[None]:
    """Write what the engine logs as one line each, unless the app's module has set up logging itself."""
    root = logging.getLogger()
    if root.handlers or debugging():
        yield
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_Short())
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


class _Short(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(record.getMessage())


async def find(app: Mainspring, text: str) -> Loaded:
    """Return the instance that `Workflow/id` names, or a bare id if only one workflow has it."""
    if not text.isprintable():
        raise NoSuchInstanceError(text)  # no id holds what cannot be seen
    workflow, slash, id = text.partition("/")
    refs = [Ref(name, text) for name in internals_of(app).registry.workflows]
    if slash and workflow and id:
        refs.insert(0, Ref(workflow, id))
    try:
        read = await internals_of(app).engine.store.load(refs)
    except DamagedRecordError:
        if text != str(FLEET):
            raise
        read = await internals_of(app).engine.store.load(
            [FLEET], 0
        )  # ending it is the way out of orders that cannot be read
    found = [loaded for loaded in read if loaded is not None]
    # Ids may hold slashes: who writes the whole identity means that.
    exact = [loaded for loaded in found if str(ref_of(loaded)) == text]
    match exact or found:
        case [one]:
            if one.row.purged_us is not None:
                raise InstancePurgedError(str(ref_of(one)), one.row.status, moment(one.row.purged_us))
            return one
        case []:
            for ref in refs:
                if await internals_of(app).engine.store.inbox(ref, 1):
                    raise NotFoundError(f"{ref} {await Instance[Any, Any](internals_of(app), ref).standing()}.")
            raise NoSuchInstanceError(text)
        case several:
            names = ", ".join(str(ref_of(loaded)) for loaded in several)
            raise MisuseError(f"Several workflows have an instance {text}: {names}. Write which one.")


def ref_of(loaded: Loaded) -> Ref:
    """Return the identity of what was loaded."""
    return Ref(loaded.row.workflow, loaded.row.id)


def shown_url(url: str) -> str:
    """Return a store's URL without its password, which may stand in two places.

    >>> shown_url("postgresql://ann:secret@db/shop"), shown_url("postgresql://db/shop?user=ann&password=secret")
    ('postgresql://ann:***@db/shop', 'postgresql://db/shop?user=ann&password=***')
    """
    password = urlsplit(url).password
    return _PASSWORD.sub(r"\1***", url.replace(f":{password}@", ":***@") if password else url)

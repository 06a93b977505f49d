"""Which calls are impure, by the name of their module, and what to do instead."""

from __future__ import annotations

import io
import random
import sys
from datetime import date
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

Rule: TypeAlias = Literal["clock", "random", "io", "global", "mutation", "order", "await", "source"]

FIXES: Final[dict[Rule, str]] = {
    "clock": "Take the time from the message or its envelope; to wait, return Schedule.",
    "random": "Let the sender put the value into the message, or ask a handler for it.",
    "io": "Send a message to a handler that does it.",
    "global": "Keep it in the state: evolve returns the next one.",
    "mutation": "Build a new value, as in dataclasses.replace(state, ...) or [*items, item].",
    "await": "Await a step, receive(…), ask(…), a child, asyncio.sleep, or a task that awaits one of these.",
    "order": "Sort it, as in sorted(tags): the order of a set differs between processes.",
    "source": "Write the workflow in a file, so that it can be read.",
}


FLOW_FIXES: Final[dict[Rule, str]] = {
    **FIXES,
    "clock": "Call now(), which is the recorded time; to wait, `await asyncio.sleep(…)`.",
    "random": "Use rng() or uuid(), which give the same again.",
    "io": "Put it into a function with @app.step, and await that.",
    "global": "Keep it in a variable of the function: it is run again from what is recorded.",
    "mutation": "Build a new value: what was recorded is given to the code again, and must be what it was.",
}
"""The same in the words of a flow."""


class Calls(Struct, frozen=True):
    """The impure calls of one module: those in `only`, or all but those in `but`.

    >>> Calls("clock", only=frozenset({"now"})).has("now")
    True
    """

    rule: Rule
    only: frozenset[str] | None = None
    but: frozenset[str] = frozenset()

    def has(self, name: str) -> bool:
        """Return True if a call of this name is meant."""
        return name not in self.but if self.only is None else name in self.only


def _only(rule: Rule, names: str) -> Calls:
    return Calls(rule, only=frozenset(names.split()))


def _all(rule: Rule, but: str = "") -> Calls:
    return Calls(rule, but=frozenset(but.split()))


_OS_PURE: Final = "fspath fsencode fsdecode strerror PathLike _path_normpath _path_splitroot _path_splitroot_ex"
_OS_RANDOM: Final = "urandom getrandom"
_PATH_IO: Final = (
    "exists lexists isfile isdir islink ismount getsize getmtime getatime getctime abspath realpath expanduser "
    "samefile expandvars"
)
_FILE_IO: Final = (
    "open read_text write_text read_bytes write_bytes exists is_file is_dir is_symlink stat lstat mkdir rmdir unlink "
    "rename replace touch iterdir glob rglob resolve absolute cwd home expanduser chmod"
)
_SOCKET_PURE: Final = "htons htonl ntohs ntohl inet_aton inet_ntoa inet_pton inet_ntop"

MODULES: Final[dict[str, tuple[Calls, ...]]] = {
    "time": (
        _only(
            "clock",
            "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns thread_time "
            "thread_time_ns clock_gettime clock_gettime_ns localtime ctime sleep",
        ),
    ),
    "pendulum": (_only("clock", "now today tomorrow yesterday"),),
    "arrow": (_only("clock", "now utcnow"),),
    "django.utils.timezone": (_only("clock", "now localtime localdate"),),
    "random": (_all("random", but="Random"),),
    "numpy.random": (_all("random"),),
    "secrets": (_all("random", but="compare_digest"),),
    "uuid": (_only("random", "uuid1 uuid4 uuid6 uuid7 getnode"),),
    "os": (_only("random", _OS_RANDOM), _all("io", but=f"{_OS_PURE} {_OS_RANDOM}")),
    "posixpath": (_only("io", _PATH_IO),),
    "ntpath": (_only("io", _PATH_IO),),
    "genericpath": (_only("io", _PATH_IO),),
    "pathlib": (_only("io", _FILE_IO),),
    "io": (_only("io", "open open_code FileIO"),),
    # hash and id differ from process to process; a dataclass's own __hash__ is not looked into.
    "builtins": (_only("io", "open print input breakpoint"), _only("random", "hash id")),
    "socket": (_all("io", but=_SOCKET_PURE),),
    "urllib.request": (_all("io"),),
    "http.client": (_all("io"),),
    "sys": (_only("io", "exit"),),
} | dict.fromkeys(
    [
        *("aiohttp", "apsw", "asyncio", "asyncpg", "boto3", "concurrent", "ftplib", "glob", "httpx", "httplib2"),
        *("logging", "multiprocessing", "psycopg", "psycopg2", "redis", "requests", "select", "shutil", "smtplib"),
        *("sqlite3", "ssl", "subprocess", "tempfile", "threading", "urllib3", "webbrowser"),
    ],
    (_all("io"),),
)

ATTRIBUTES: Final[dict[str, Rule]] = {
    "os.environ": "io",
    "os.environb": "io",
    "sys.argv": "io",
    "sys.stdin": "io",
    "sys.stdout": "io",
    "sys.stderr": "io",
}
"""What is impure already when read."""

PUBLIC_NAMES: Final[dict[str, str]] = {
    "posix": "os",
    "nt": "os",
    "_io": "io",
    "_socket": "socket",
    "_thread": "threading",
    "_posixsubprocess": "subprocess",
    "_sqlite3": "sqlite3",
    "_uuid": "uuid",
}
"""The name people know of a module written in C."""

CLOCK_METHODS: Final = frozenset({"now", "utcnow", "today"})

_OPEN_FILES: Final = (io.FileIO, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)
_IO_TYPES_OF: Final = frozenset(
    {"logging", "socket", "_socket", "sqlite3", "_sqlite3", "subprocess", "aiohttp", "apsw", "asyncpg", "httpx"}
    | {"psycopg", "psycopg2", "redis", "requests", "urllib3"}
)


def rule_of(module: str, name: str) -> Rule | None:
    """Return the rule that a call of `name` in `module` breaks, if it breaks one.

    >>> rule_of("posix", "urandom"), rule_of("os", "listdir"), rule_of("os", "fspath")
    ('random', 'io', None)
    >>> rule_of("requests.sessions", "get")
    'io'
    """
    module = PUBLIC_NAMES.get(module, module)
    while module:
        for calls in MODULES.get(module, ()):
            if calls.has(name):
                return calls.rule
        # Only packages that are impure as a whole speak for what is in them.
        if module in MODULES and MODULES[module][-1].only is not None:
            return None
        module = module.rpartition(".")[0]
    return None


def rule_of_method(owner: Any, name: str) -> Rule | None:
    """Return the rule that calling the method `name` of this object or class breaks, if it breaks one.

    >>> rule_of_method(date, "today"), rule_of_method(date(2026, 1, 1), "isoformat")
    ('clock', None)
    """
    if isinstance(owner, type):
        return "clock" if name in CLOCK_METHODS and issubclass(owner, date) else None
    if isinstance(owner, date):
        return "clock" if name in CLOCK_METHODS else None
    if isinstance(owner, random.Random):
        return "random"
    if isinstance(owner, _OPEN_FILES) or type(owner).__module__.partition(".")[0] in _IO_TYPES_OF:
        return "io"
    return None


def is_standard(module: str) -> bool:
    """Return True if a module is part of Python itself.

    >>> is_standard("urllib.request"), is_standard("orders")
    (True, False)
    """
    return module.partition(".")[0] in sys.stdlib_module_names

from __future__ import annotations

import copy
import cProfile
import gc
import json
import logging
import os
import random
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from pydantic import BaseModel

from mainspring.errors import ImpureCallError
from mainspring.purity import purity_guard

# Planted bugs all over.
# ruff: noqa: PTH118, PTH123, PLW1510, S311, S607, SIM115

RNG = random.Random(7)


class Moment(datetime):
    """A subclass has a clock too."""


@dataclass(frozen=True)
class Stamped:
    at: datetime = field(default_factory=datetime.now)


class Model(BaseModel):
    at: float = 0.0


IMPURE: dict[str, tuple[Callable[[], Any], str]] = {
    "time": (time.time, "time.time"),
    "monotonic": (time.monotonic_ns, "time.monotonic_ns"),
    "sleep": (lambda: time.sleep(0), "time.sleep"),
    "now": (datetime.now, "datetime.now"),
    "now with a zone": (lambda: datetime.now(UTC), "datetime.now"),
    "now of a subclass": (Moment.now, "Moment.now"),
    "today": (date.today, "date.today"),
    "a default factory": (Stamped, "datetime.now"),
    "random": (random.random, "Random.random"),
    "choice": (lambda: random.choice([1, 2]), "random.Random.choice, which called Random.getrandbits"),
    "a generator made before": (RNG.random, "Random.random"),
    "a generator without a seed": (
        lambda: random.Random().random(),
        "random.Random.__init__, which called Random.seed",
    ),
    "uuid4": (uuid.uuid4, "uuid.uuid4"),
    "uuid1": (uuid.uuid1, "uuid.uuid1"),
    "secrets": (secrets.token_hex, "secrets.token_hex, which called os.urandom"),
    "urandom": (lambda: os.urandom(1), "os.urandom"),
    "open": (lambda: open("/nowhere"), "io.open"),
    "a path": (lambda: Path("/nowhere").read_text(), "pathlib.Path.read_text, which called io.open"),
    "the working directory": (os.getcwd, "os.getcwd"),
    "the environment": (lambda: os.environ["HOME"], "os.environ"),
    "print": (print, "print"),
    "standard output": (lambda: sys.__stdout__ and sys.__stdout__.write(""), "TextIOWrapper.write"),
    "a socket": (socket.socket, "socket.socket.__init__"),
    "a logger": (lambda: logging.getLogger("x").info("x"), "logging.getLogger"),
    "a subprocess": (lambda: subprocess.run(["true"]), "subprocess.run"),
    "a thread": (lambda: threading.Thread(target=int).start(), "threading.Thread.start, which called start_"),
    "a temporary file": (tempfile.mkdtemp, "tempfile."),
    "behind C code": (lambda: sorted([1, 2], key=lambda _: time.time()), "time.time"),
}


class Colour(Enum):
    RED = 1


@dataclass(frozen=True)
class Point:
    x: int = 1


PURE: dict[str, Callable[[], Any]] = {
    "dataclasses": lambda: replace(Point(), x=2),
    "hash, repr and equality": lambda: (hash(Point()), repr(Point()), Point() == Point()),
    "deep copies": lambda: copy.deepcopy({"a": [Point()]}),
    "a generator seeded here": lambda: random.Random(7).choice([1, 2]),
    "a name-based uuid": lambda: uuid.uuid5(uuid.NAMESPACE_URL, "o-1"),
    "times that are computed": lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=1),
    "times that are read and written": lambda: datetime.strptime("2026", "%Y").replace(tzinfo=UTC).strftime("%d"),
    "a time zone": lambda: datetime(2026, 7, 1, tzinfo=ZoneInfo("Europe/Vienna")).utcoffset(),
    "decimals": lambda: Decimal("1.25").quantize(Decimal("0.1")),
    "enums": lambda: Colour(1).name,
    "JSON": lambda: json.loads(json.dumps({"a": 1})),
    "Structs": lambda: msgspec.json.decode(msgspec.json.encode(Point()), type=Point),
    "pydantic models": lambda: Model(at=1.0).model_copy(update={"at": 2.0}),
    "regular expressions": lambda: re.compile(r"a+\d").match("a1"),
    "paths that are joined": lambda: (PurePath("a") / "b", os.path.join("a", "b")),
    "an import": lambda: __import__("mailcap" if sys.version_info < (3, 13) else "sched"),
    "sorting and formatting": lambda: f"{sorted([3, 1], key=lambda n: -n)!r:>10}",
}


def call_of(run: Callable[[], object]) -> ImpureCallError:
    with pytest.raises(ImpureCallError) as caught, purity_guard("Orders.decide"):
        run()
    return caught.value


@pytest.mark.parametrize("name", IMPURE)
def test_what_is_impure_is_caught(name: str) -> None:
    run, call = IMPURE[name]
    assert call in call_of(run).call


@pytest.mark.parametrize("name", PURE)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_pure_runs_unharmed(name: str) -> None:
    with purity_guard("Orders.decide"):
        guarded = PURE[name]()
    assert repr(guarded) == repr(PURE[name]())


def test_a_warning_is_not_taken_for_output() -> None:
    with pytest.warns(UserWarning, match="old"), purity_guard("Orders.decide"):
        warnings.warn("old", stacklevel=1)


def test_the_impure_call_is_not_made() -> None:
    before = RNG.getstate()
    call_of(RNG.random)
    assert RNG.getstate() == before


def test_the_error_says_where_the_author_called() -> None:
    def decide() -> str:
        return secrets.token_hex()

    error = call_of(decide)
    assert (error.where, error.file, error.line) == ("Orders.decide", __file__, decide.__code__.co_firstlineno + 1)


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("now", "Take the time from the message or its envelope; to wait, return Schedule."),
        ("sleep", "Take the time from the message or its envelope; to wait, return Schedule."),
        ("choice", "Let the sender put the value into the message, or ask a handler for it."),
        ("uuid4", "Let the sender put the value into the message, or ask a handler for it."),
        ("print", "Send a message to a handler that does it."),
        ("a logger", "Send a message to a handler that does it."),
        ("standard output", "Send a message to a handler that does it."),
    ],
)
def test_the_error_says_what_to_do_about_this_very_call(name: str, fix: str) -> None:
    error = call_of(IMPURE[name][0])
    assert error.fix == fix
    assert str(error).endswith(f"). {fix}")


def test_an_error_that_the_author_swallows_is_raised_at_the_end() -> None:
    def careless() -> float:
        try:
            return time.time()
        except Exception:  # noqa: BLE001  that is the case
            return 0.0

    assert call_of(careless).call == "time.time"


def test_an_error_that_the_author_replaces_is_still_the_impure_call() -> None:
    def replacing() -> None:
        try:
            time.time()
        except ImpureCallError as error:
            raise ValueError("no clock") from error

    assert call_of(replacing).call == "time.time"


def test_the_authors_own_errors_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), purity_guard("Orders.decide"):
        _ = 1 / 0


def test_after_the_block_everything_is_allowed_again() -> None:
    with purity_guard("Orders.decide"):
        pass
    assert time.time() > 0
    assert sys.getprofile() is None


def test_after_an_impure_call_everything_is_allowed_again() -> None:
    call_of(time.time)
    assert time.time() > 0
    assert sys.getprofile() is None


def test_guards_nest() -> None:
    def guarding() -> None:
        with purity_guard("inner"):
            pass
        time.time()

    assert call_of(guarding).where == "Orders.decide"


def test_the_inner_guard_speaks_first() -> None:
    with pytest.raises(ImpureCallError) as caught, purity_guard("outer"), purity_guard("inner"):
        time.time()
    assert caught.value.where == "inner"


def test_an_outer_guard_still_watches_after_an_inner_one_has_caught_something() -> None:
    def guarding() -> None:
        call_of(time.time)
        time.monotonic()

    assert call_of(guarding).call == "time.monotonic"


@pytest.fixture
def no_profiler() -> Iterator[None]:
    yield
    sys.setprofile(None)


@pytest.mark.usefixtures("no_profiler")
def test_a_profile_function_that_was_set_goes_on() -> None:
    def profile(*_: object) -> None:
        pass

    sys.setprofile(profile)
    call_of(time.time)
    assert sys.getprofile() is profile


@pytest.mark.usefixtures("no_profiler")
def test_a_profiler_written_in_c_goes_on() -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    call_of(time.time)
    sorted([2, 1])
    profiler.disable()
    assert any("sorted" in str(entry.code) for entry in profiler.getstats())


def test_strangers_finalizers_do_not_run_inside() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            time.time()

    Cycle()
    with purity_guard("Orders.decide"):
        assert len([[n] for n in range(10_000)]) == 10_000
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with purity_guard("Orders.decide"):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

"""Every setting stands on the page of settings, with its default, and none that does not exist."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from mainspring import Breaker, Mainspring, RateLimit, Retry, Workflow
from mainspring.codec.limits import BODY_LIMIT_BYTES, STATE_LIMIT_BYTES, WARN_FRACTION
from mainspring.engine.claiming.claimer import POLL_SECONDS
from mainspring.engine.engine import DRAIN_SECONDS, HEARTBEAT_SECONDS, LEASE_SECONDS, RELIEVE_SECONDS
from mainspring.engine.handlers.handler import HandlerOptions
from mainspring.telemetry.logs import LINES
from mainspring.web.connections import PIPELINED, Limits
from mainspring.web.models import MOST_FIELDS
from tests.project.newcomer.pages import ROOT

PAGE = (ROOT / "docs/reference/settings.md").read_text()
ROW = re.compile(r"^\| `?(.+?)`? \| (.+?) \| .+ \|$", re.MULTILINE)
SECONDS = {"s": 1, "min": 60, "h": 3_600}


def documented(head: str) -> dict[str, str]:
    table = PAGE[PAGE.index(f"| `{head}` |") :].partition("\n\n")[0]
    return {name: default.strip("`") for name, default in ROW.findall(table)[1:]}


def text(default: Any) -> str:
    match default:
        case timedelta():
            seconds = default.total_seconds()
            return f"{seconds / 3_600:g} h" if seconds >= 3_600 else f"{seconds:g} s"
        case Retry() | Breaker():
            return f"{type(default).__name__}()"
        case inspect.Parameter.empty | msgspec.NODEFAULT:
            return "required"
    return repr(default)


def fields(struct: type[msgspec.Struct]) -> dict[str, str]:
    return {field.name: text(field.default) for field in msgspec.structs.fields(struct)}


def parameters(function: Any) -> dict[str, str]:
    found: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    return {name: text(parameter.default) for name, parameter in found.items() if name != "self"}


def attributes() -> dict[str, str]:
    names = [name for name in inspect.get_annotations(Workflow) if not name.startswith("_")]
    return {name: text(getattr(Workflow, name, inspect.Parameter.empty)) for name in names}


@pytest.mark.parametrize(
    ("head", "real"),
    [
        ("Workflow.", attributes()),
        ("Mainspring(url, …)", parameters(Mainspring.__init__)),
        ("await app.start(…)", parameters(Mainspring.start)),
        ("@app.handler(…)", fields(HandlerOptions)),
        ("Retry(…)", fields(Retry)),
        ("Breaker(…)", fields(Breaker)),
        ("RateLimit(…)", fields(RateLimit)),
        ("--limit NAME=…", fields(Limits)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_settings_and_their_defaults_are_those_of_the_code(head: str, real: dict[str, str]) -> None:
    assert documented(head) == real


def test_limits_are_those_of_the_code() -> None:
    mebibyte = 1_024 * 1_024

    warned = BODY_LIMIT_BYTES // WARN_FRACTION // 1_024
    assert f"| a body | {BODY_LIMIT_BYTES // mebibyte} MiB, a warning from {warned} KiB" in PAGE
    assert f"| a state | {STATE_LIMIT_BYTES // mebibyte} MiB |" in PAGE
    assert f"| a worker's lease, and its heartbeat | {LEASE_SECONDS:g} s, {HEARTBEAT_SECONDS:g} s |" in PAGE
    assert f"| how often the dead are looked for | {RELIEVE_SECONDS:g} s |" in PAGE
    assert f"no hint came | {POLL_SECONDS:g} s |" in PAGE
    assert f"| the fields of an operation's body | {MOST_FIELDS} |" in PAGE
    assert f"on one connection | {PIPELINED} |" in PAGE
    assert f"warnings and errors | {LINES} |" in PAGE
    assert f"drain=timedelta(seconds={DRAIN_SECONDS:g})" in PAGE


def test_every_variable_that_is_read_stands_on_the_page() -> None:
    read = {
        name
        for path in (ROOT / "src/mainspring").rglob("*.py")
        if "templates" not in path.parts
        for name in re.findall(r"\bMAINSPRING_[A-Z_]+\b", path.read_text())
    }

    assert read == set(re.findall(r"`(MAINSPRING_[A-Z_]+)`", PAGE))

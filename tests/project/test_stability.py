"""What docs/reference/stability.md promises is watched by tests that exist; its facts are those of the code."""

import importlib
import re
from typing import Any

import pytest

from mainspring import Complete, Decisions, Event, Workflow
from mainspring.analysis.export import stream_file
from mainspring.app import histories
from mainspring.brokers import Broker, Subscription
from mainspring.codec import wire
from mainspring.core.definition import definition_of
from mainspring.sealing import About, Compressed, Encrypted, Keys, Seal, StaticKeys
from mainspring.stores.postgres.schema import OLDEST_SERVER
from mainspring.testing.samples import Count, Counted, CountedThrice
from tests.project.test_docs import check_tests
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/reference/stability.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines[1:]]


PROMISES = rows("Stable")


def test_there_are_promises() -> None:
    assert len(PROMISES) >= 10


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise[0])
def test_a_promise_names_the_tests_that_watch_it(promise: list[str]) -> None:
    check_tests(promise[-1])


# Adapters, seals and workflows of others have these and no more: what is added has to do without.
@pytest.mark.parametrize(
    ("cls", "required"),
    [
        (Broker, {"open", "close", "subscribe", "publish", "lag"}),
        (Subscription, {"receive", "acknowledge", "give_back", "extend", "close"}),
        (Seal, {"close", "open"}),
        (Keys, {"current", "find"}),
    ],
)
def test_no_more_is_required_of_what_others_implement(cls: type[Any], required: set[str]) -> None:
    names = {*vars(cls), *cls.__annotations__}

    assert {name for name in names if not name.startswith("_")} == required


def test_no_more_is_required_of_a_workflow() -> None:
    class Least(Workflow[Count, Counted, CountedThrice]):
        initial_state = Counted()

        def route(self, message: Count) -> str | None:
            return message.counter

        def decide(self, message: Count, state: Counted) -> Decisions[Count, CountedThrice] | None:
            return [Complete()]

        def evolve(self, state: Counted, event: Event[Count, CountedThrice]) -> Counted | None:
            return None

    assert definition_of(Least).name == "Least"


# As they were sealed when this was written: what is stored so is never written again.
@pytest.mark.parametrize(
    ("seal", "stored", "body"),
    [
        (
            Compressed(),
            "01789cedc1211500201005b02e3f066d1067c1e07874bf18986d376b9fcac804000000becb6b7ff3ef5c",
            b'{"note":"' + b"a" * 4000 + b'"}',
        ),
        (
            Encrypted(StaticKeys({"2026": bytes(range(32))})),
            "020432303236ed31b14414c9a0aaf400dcd425c7dee6384b870523aadf5e26c9330796b12f5c54768d1ff84bc8115eab4cb10c5d",
            b'{"order_id":"o-1"}',
        ),
    ],
    ids=["compressed", "encrypted"],
)
def test_a_body_that_was_sealed_before_is_opened(seal: Seal, stored: str, body: bytes) -> None:
    assert seal.open(bytes.fromhex(stored), About("Orders", "o-1", "PlaceOrder")) == body


@pytest.mark.parametrize(
    ("format", "version"),
    [
        ("[the envelope](envelope.md)", wire.ENVELOPE_VERSION),
        ("[exported streams](export-format.md)", stream_file.VERSION),
        ("[kept histories](../how-to/golden-histories.md)", histories.FORMAT),
    ],
)
def test_versions_of_formats_are_those_of_the_code(format: str, version: int) -> None:
    assert any(promise[0].startswith(f"{format}, version {version}") for promise in PROMISES)


def test_modules_on_the_page_are_there() -> None:
    modules = set(re.findall(r"`(mainspring\.[a-z_.]+)`", PAGE))

    assert len(modules) > 10
    for module in modules:
        importlib.import_module(module)


def test_versions_of_python_and_postgresql_are_those_of_the_project() -> None:
    pythons = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())

    assert f"Python {pythons[0]} to {pythons[-1]} and PostgreSQL {OLDEST_SERVER} and later" in PAGE


def test_what_warns_of_its_removal_is_listed() -> None:
    warning = any("DeprecationWarning" in path.read_text() for path in (ROOT / "src").rglob("*.py"))

    assert (rows("Deprecations")[0][0] != "nothing yet") == warning

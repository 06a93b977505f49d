"""What is imported before it is used: nothing. Counted by module, in processes of their own; no time is asserted."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import mainspring
from mainspring import _names

# What an extra brings, or only some apps need. As prefixes: a package stands for all that is in it.
EXTRAS = (
    "apsw",
    "asyncpg",
    "psycopg",
    "click",
    "rich",
    "cryptography",
    "pydantic",
    "opentelemetry",
    "fastapi",
    "uvicorn",
    "nats",
    "redis",
    "aio_pika",
    "aiokafka",
    "botocore",
    "httpcore",
    "mainspring.brokers",
    "mainspring.remote",
)
TESTING = ("hypothesis", "pytest", "mainspring.testing", "mainspring.purity")
STORES = ("mainspring.stores.sqlite", "mainspring.stores.postgres", "mainspring.stores.memory")
ENGINE = ("asyncio", "ssl", "mainspring.engine", "mainspring.app", "mainspring.codec", "mainspring.sealing")
HELP = """
from mainspring.cli import main
for command in {commands}:
    sys.argv = ['mainspring', *command, '--help']
    try: main()
    except SystemExit as end: assert not end.code, command
"""
OPENED = """
from mainspring.engine.runtime import SystemClock
from mainspring.stores import open_store
open_store({url!r}, SystemClock())
"""
# All that the list of commands is made of. A module more is looked at, and cut or allowed here.
FOR_THE_LIST = {"mainspring.cli.group", "mainspring.cli.failures", "mainspring.cli.options", "mainspring.cli"}


def imported_by(code: str) -> set[str]:
    """Return the modules that code imports, beyond those that Python itself begins with."""
    told = f"import sys; bare = set(sys.modules)\n{code}\nprint('MODULES', *sorted(set(sys.modules) - bare))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)  # noqa: S603  ours
    return set(done.stdout.rpartition("MODULES ")[2].split())


def among(modules: set[str], unwanted: tuple[str, ...]) -> list[str]:
    return sorted(name for name in modules if any(f"{name}.".startswith(f"{prefix}.") for prefix in unwanted))


def test_the_package_alone_imports_nothing() -> None:
    imported = imported_by("import mainspring")

    assert among(imported, (*EXTRAS, *TESTING, *STORES, *ENGINE, "msgspec")) == []
    assert among(imported, ("mainspring",)) == ["mainspring"]


def test_the_package_leads_to_its_errors_and_its_testing_kit() -> None:
    imported = imported_by("import mainspring\nmainspring.errors.StoreError, mainspring.testing.fuzz")

    assert {"mainspring.errors", "mainspring.testing"} <= imported


def test_a_workflow_needs_no_engine() -> None:
    imported = imported_by("from mainspring import Workflow, Send, Received, message")

    assert among(imported, (*EXTRAS, *TESTING, *STORES, *ENGINE)) == []


def test_an_app_needs_no_extra_and_no_store_before_it_is_opened() -> None:
    imported = imported_by("from mainspring import Mainspring; app = Mainspring('sqlite:///orders.db')")

    assert (
        among(imported, (*EXTRAS, *TESTING, *STORES, "multiprocessing", "mainspring.engine.handlers.process_pool"))
        == []
    )
    assert "mainspring.engine.engine" in imported


@pytest.mark.parametrize(("url", "store"), [("memory://", "memory"), ("sqlite:///never.db", "sqlite")])
def test_a_store_brings_no_other_store(url: str, store: str) -> None:
    imported = imported_by(OPENED.format(url=url))

    assert f"mainspring.stores.{store}" in imported
    assert among(imported, tuple(other for other in STORES if other != f"mainspring.stores.{store}")) == []
    assert ("apsw" in imported) == (store == "sqlite")
    assert "asyncpg" not in imported


def test_the_help_needs_neither_core_nor_engine() -> None:
    imported = imported_by(HELP.format(commands=[[]]))

    assert "click" in imported
    unwanted = tuple(extra for extra in EXTRAS if extra != "click")
    assert among(imported, (*unwanted, *TESTING, *STORES, *ENGINE, "msgspec", "mainspring.core", "email")) == []
    ours = {name for name in among(imported, ("mainspring",)) if not name.startswith("mainspring.errors")}
    assert ours == {"mainspring", *FOR_THE_LIST}


def test_the_help_of_a_command_needs_no_store_and_no_table() -> None:
    imported = imported_by(HELP.format(commands=[["worker"], ["show"], ["doctor"], ["purge"], ["tasks"]]))

    assert {"mainspring.cli.worker", "mainspring.cli.tasks"} <= imported

    unwanted = tuple(extra for extra in EXTRAS if extra != "click")
    assert among(imported, (*unwanted, *TESTING, *STORES)) == []


def test_every_public_name_is_where_the_package_says() -> None:
    package: Any = mainspring
    assert len(package.__all__) > 50
    for name in package.__all__:
        value = getattr(package, name)
        assert vars(package)[name] is value, "kept: the second look-up costs nothing"
        assert vars(_names)[name] is value, "what type checkers read is what is imported"

    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = package.Nothing


def test_the_reader_of_code_and_the_formats_of_process_mining_are_loaded_when_they_are_asked_for() -> None:
    imported = imported_by("import mainspring.web.api, mainspring.cli.export")

    heavy = ("mainspring.analysis.reading.machine", "mainspring.analysis.export.event_logs")
    assert among(imported, heavy) == []
    assert "mainspring.analysis.export.export" in imported

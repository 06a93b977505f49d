"""Loaded into the runs: shuffles the tests if asked to, and writes down what came of each, one line of JSON a phase."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Final

import pytest

from tests.steady import delays

FILE: Final = "MAINSPRING_STEADY_FILE"
ORDER: Final = "MAINSPRING_STEADY_ORDER"
"""A seed, if the tests are to run in random order; all processes of a run must agree on it."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if seed := os.environ.get(ORDER):
        random.Random(seed).shuffle(items)  # noqa: S311  an order, no secret


def pytest_configure(config: pytest.Config) -> None:
    if seed := os.environ.get(delays.SEED):
        delays.install(seed)
    # The processes of xdist hand their reports to the one that started them, and that one writes.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Writer(Path(os.environ[FILE])))


class _Writer:
    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        line = {"test": report.nodeid, "phase": report.when, "outcome": report.outcome, "seconds": report.duration}
        if report.failed:
            line["text"] = report.longreprtext
        with self._file.open("a") as file:
            file.write(json.dumps(line) + "\n")

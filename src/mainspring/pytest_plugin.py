"""Golden histories as tests of pytest: every instance in a file of histories is one test.

    [tool.pytest.ini_options]
    mainspring_app = "shop:app"
    mainspring_histories = ["tests/histories/*.json"]

pytest finds this module by itself wherever mainspring is installed, so it imports nothing until histories are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Know the options."""
    group = parser.getgroup("mainspring", "golden histories")
    group.addoption(
        "--mainspring-histories",
        action="append",
        default=[],
        metavar="GLOB",
        help="files of histories, each instance of which is a test; relative to the root directory",
    )
    group.addoption("--mainspring-app", metavar="MODULE:APP", help="the app that they are held against")
    parser.addini("mainspring_histories", "the same as --mainspring-histories", type="args", default=[])
    parser.addini("mainspring_app", "the same as --mainspring-app", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Collect histories, if any are named."""
    asked: Any = config.getoption("mainspring_histories")
    patterns: Any = asked or config.getini("mainspring_histories")
    if patterns:
        from mainspring.testing.history_tests import Collecting  # noqa: PLC0415  most test runs have none

        config.pluginmanager.register(Collecting(config, patterns, asked=bool(asked)), "mainspring-histories")

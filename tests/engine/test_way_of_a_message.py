"""The page that walks through the code tells the way that a message really goes."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.engine.tracing import Crossing, walk
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "internals" / "way-of-a-message.md"
STATION = re.compile(r"^\| (?P<number>\d+) \| .* \| (?P<where>.*) \| .* \|$", re.MULTILINE)
MODULE = re.compile(r"\]\(\.\./\.\./src/mainspring/(?P<path>[a-z_/]+)\.py\)")
# What is asked from everywhere, and is no place that a message comes to.
EVERYWHERE = {"engine.runtime", "engine.registry", "engine.inputs.pending"}
# Calls between packages and between modules, and how many modules: with more, a reader would have to jump again.
MOST_BETWEEN_PACKAGES = 46
MOST_BETWEEN_MODULES = 74
MOST_MODULES = 33


@pytest.fixture(scope="module")
def crossings(tmp_path_factory: pytest.TempPathFactory) -> list[Crossing]:
    return asyncio.run(walk(tmp_path_factory.mktemp("walk")))


def stations() -> dict[int, list[str]]:
    """Return the modules of each station on the page."""
    return {
        int(row["number"]): [module["path"].replace("/", ".") for module in MODULE.finditer(row["where"])]
        for row in STATION.finditer(PAGE.read_text())
    }


def package(module: str) -> str:
    """Return the package of a module; of the engine and of the stores, the sub-package."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] in ("engine", "stores") else parts[0]


def test_a_traced_order_visits_the_stations_of_the_page_in_their_order(crossings: list[Crossing]) -> None:
    visited = [crossing.module for crossing in crossings]
    told = [module for modules in stations().values() for module in modules]
    assert len(stations()) == 10
    assert set(told) <= set(visited)
    # Some are asked before their turn, as the dispatcher for its capacity: each is met behind the one before it.
    way = iter(visited)
    assert [module for module in told if module not in way] == []


def test_every_package_that_a_message_comes_to_is_on_the_page(crossings: list[Crossing]) -> None:
    told = {package(module) for modules in stations().values() for module in modules}
    visited = {package(crossing.module) for crossing in crossings if crossing.module not in EVERYWHERE}
    assert visited - told == {"app"}


def test_a_message_crosses_few_boundaries(crossings: list[Crossing]) -> None:
    between = [crossing for crossing in crossings if package(crossing.caller) != package(crossing.module)]
    assert len(between) <= MOST_BETWEEN_PACKAGES, "\n".join(map(str, between))
    assert len(crossings) <= MOST_BETWEEN_MODULES, "\n".join(map(str, crossings))
    assert len({crossing.module for crossing in crossings}) <= MOST_MODULES


def test_the_page_shows_its_picture() -> None:
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", PAGE.read_text())
    assert [Path(PAGE.parent / picture).exists() for picture in pictures] == [True]

"""The plugin for pytest: every instance in a file of histories is a test; where none are named, nothing is loaded."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ("pytester",)

# Here, so that no run of pytest inside a test imports them anew: their classes would be others then.
for name in ("mainspring.stores.sqlite", "mainspring.testing.history_tests"):
    importlib.import_module(name)

SHOP = """
from dataclasses import dataclass
from mainspring import Complete, Mainspring, Send, Workflow

@dataclass(frozen=True)
class Claim:
    id: str
    euros: int

@dataclass(frozen=True)
class Review:
    id: str

@dataclass(frozen=True)
class Open:
    euros: int = 0

LIMIT = 100

class Refund(Workflow[Claim, Open, Review]):
    initial_state = Open()
    def route(self, message: Claim) -> str | None:
        return message.id
    def evolve(self, state, event):
        return None
    def decide(self, message: Claim, state: Open):
        return [Send(Review(message.id))] if message.euros > LIMIT else [Complete()]

app = Mainspring("sqlite:///shop.db")
app.add(Refund())
app.external(Review)
"""
KEEP = """
import asyncio
from mainspring.testing import save_histories
from shop import Claim, app

async def keep():
    async with app:
        await app.send(Claim("c-1", 300))
        await app.send(Claim("c-2", 20))
        await save_histories(app, "histories/refunds.json")

asyncio.run(keep())
"""
# They would be imported anew by each run inside a test; one of them takes longer than all else.
QUICK = tuple(f"-pno:{name}" for name in ("hypothesispytest", "schemathesis", "xdist", "anyio", "cacheprovider"))
SETTINGS = """
[pytest]
pythonpath = .
mainspring_app = shop:app
mainspring_histories = histories/*.json
"""


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an app and two histories of it."""
    place = tmp_path_factory.mktemp("refunds")
    (place / "shop.py").write_text(SHOP)
    (place / "histories").mkdir()
    subprocess.run([sys.executable, "-c", KEEP], cwd=place, check=True)  # noqa: S603  our own
    return place


@pytest.fixture
def here(shop: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A directory of one's own with the app and its histories."""
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(QUICK))
    # Another test of this process may have imported a shop of its own.
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    (pytester.path / "histories").mkdir()
    for name in ("shop.py", "histories/refunds.json"):
        (pytester.path / name).write_bytes((shop / name).read_bytes())
    pytester.makepyfile(test_other="def test_other():\n    pass\n")
    return pytester


def test_every_instance_is_a_test_of_its_own(here: pytest.Pytester) -> None:
    here.makeini(SETTINGS)
    ran = here.runpytest("-v")

    ran.assert_outcomes(passed=3)
    ran.stdout.fnmatch_lines(
        ["histories/refunds.json::Refund/c-1 PASSED*", "histories/refunds.json::Refund/c-2 PASSED*"]
    )


def test_a_changed_instance_fails_alone_and_with_its_difference_only(here: pytest.Pytester) -> None:
    here.makeini(SETTINGS)
    (here.path / "shop.py").write_text(SHOP.replace("LIMIT = 100", "LIMIT = 1_000"))
    ran = here.runpytest()

    ran.assert_outcomes(passed=2, failed=1)
    ran.stdout.fnmatch_lines(
        [
            "Refund/c-1, position 2: Claim(id='c-1', euros=300) in Open(euros=0) is decided otherwise",
            "- Sent(message=Review(id='c-1'))",
            "+ Completed(result=None)",
        ],
        consecutive=True,
    )
    ran.stdout.no_fnmatch_line("*history_tests.py*")


def test_one_instance_can_be_run_alone(here: pytest.Pytester) -> None:
    here.makeini(SETTINGS)

    here.runpytest("histories/refunds.json::Refund/c-2").assert_outcomes(passed=1)
    here.runpytest("-k", "c-1").assert_outcomes(passed=1, deselected=2)


def test_a_run_that_names_its_tests_takes_no_others(here: pytest.Pytester) -> None:
    here.makeini(SETTINGS)

    here.runpytest("test_other.py").assert_outcomes(passed=1)


def test_histories_of_the_command_line_are_always_taken(here: pytest.Pytester) -> None:
    here.makeini("[pytest]\npythonpath = .\n")
    ran = here.runpytest("test_other.py", "--mainspring-histories", "histories/*.json", "--mainspring-app", "shop:app")

    ran.assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--mainspring-histories", "none/*.json"), "*No file of histories is like none/*.json*"),
        (("--mainspring-app", ""), "*Histories of which app?*"),
    ],
)
def test_a_setting_that_leads_nowhere_is_told(here: pytest.Pytester, options: tuple[str, ...], told: str) -> None:
    here.makeini(SETTINGS.replace("mainspring_app = shop:app", "") if "app" in options[0] else SETTINGS)
    ran = here.runpytest(*options)

    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines([told])


@pytest.mark.parametrize(
    ("app", "told"),
    [
        ("shop:none", "*shop:none cannot be imported*"),
        ("shop:Refund", "*shop:Refund is a type, not a Mainspring*"),
        ("nowhere:app", "*nowhere:app cannot be imported: No module named 'nowhere'. Is it on pytest's pythonpath?*"),
    ],
)
def test_an_app_that_is_not_there_is_told(here: pytest.Pytester, app: str, told: str) -> None:
    here.makeini(SETTINGS)
    ran = here.runpytest("--mainspring-app", app)

    ran.assert_outcomes(errors=1)
    ran.stdout.fnmatch_lines([told])


def test_a_file_that_holds_no_histories_is_told(here: pytest.Pytester) -> None:
    here.makeini(SETTINGS)
    (here.path / "histories" / "other.json").write_text("[]")
    ran = here.runpytest()

    ran.stdout.fnmatch_lines(["*other.json is no file of histories*"])


def test_nothing_is_loaded_where_no_histories_are_named(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\n\n"
        "def test_nothing():\n"
        "    ours = {name for name in sys.modules if name.partition('.')[0] in ('mainspring', 'msgspec', 'apsw')}\n"
        "    assert ours == {'mainspring', 'mainspring.pytest_plugin'}, ours\n"
    )
    ran = subprocess.run(  # noqa: S603  our own
        [sys.executable, "-m", "pytest", "-q", *QUICK, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout

"""`mainspring what-if --against OLD`: two codes folded over the same streams, the old one in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.edges.cli.conftest import call

SECONDS = 60
CLAIMS = """
from dataclasses import dataclass

from mainspring import Mainspring, Received, Workflow


@dataclass(frozen=True)
class Claim:
    id: str
    euros: int


@dataclass(frozen=True)
class Note:
    id: str


@dataclass(frozen=True)
class Review:
    id: str


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class InReview:
    euros: int
    notes: int = 0


class Claims(Workflow[Claim | Note, New | InReview, Review]):
    begins = Claim
    initial_state = New()

    def route(self, message):
        return message.id

    def evolve(self, state, event):
        match state, event:
            case New(), Received(Claim(_, euros)):
                return InReview(euros)
            case InReview(euros, notes), Received(Note()):
                return InReview(euros, notes + 1)

    def decide(self, message, state):
        return []


app = Mainspring("sqlite:///claims.db")
app.add(Claims())
"""
FILL = """
import asyncio
from claims import Claim, Note, app

async def fill():
    async with app:
        for number in range(3):
            await app.send(Claim(f"c-{number}", 900))
        await app.send(Note("c-0"))
        while (await app.stats()).inbox:
            await asyncio.sleep(0)  # a turn for the app; rows send no signal

asyncio.run(fill())
"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


What = Callable[..., Ran]


def python(folder: Path, *arguments: str) -> Ran:
    # Not the name of a test's app: each folder has its own.
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAINSPRING_")}
    done = subprocess.run(  # noqa: S603  our own commands
        [sys.executable, *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, timeout=SECONDS)  # noqa: S603, S607


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database of three claims of 900 euros, one of them with a note."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "claims.py").write_text(CLAIMS)
    filled = python(folder, "-c", FILL)
    assert filled.code == 0, filled.err
    return (folder / "claims.db").read_bytes()


@pytest.fixture
def folder(tmp_path: Path, recorded: bytes) -> Path:
    """A checkout whose only revision has recorded what is in the database."""
    place = tmp_path / "shop"
    place.mkdir()
    (place / "claims.py").write_text(CLAIMS)
    git(place, "init")
    git(place, "add", "claims.py")
    git(place, "commit", "-m", "claims")
    (place / "claims.db").write_bytes(recorded)
    return place


def typed(folder: Path, *arguments: str) -> Ran:
    """Run the command as somebody types it."""
    return python(folder, "-m", "mainspring.cli", "what-if", "--app", "claims:app", *arguments)


@pytest.fixture
def what_if(folder: Path, monkeypatch: pytest.MonkeyPatch) -> What:
    """The command, called in this process: most of its time as one of its own would be that of its start."""
    for key in [key for key in os.environ if key.startswith("MAINSPRING_")]:
        monkeypatch.delenv(key)

    def run(*arguments: str) -> Ran:
        known = set(sys.modules)
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(sys, "path", [*sys.path])
            try:
                return Ran(*call("what-if", "--app", "claims:app", *arguments))
            finally:
                for name in set(sys.modules) - known:
                    if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                        del sys.modules[name]

    return run


def change(folder: Path, was: str, now: str) -> None:
    assert was in CLAIMS
    (folder / "claims.py").write_text(CLAIMS.replace(was, now))


DOUBLED = ("return InReview(euros)\n", "return InReview(2 * euros)\n")


def test_a_changed_evolve_is_found_beside_the_revision_before(folder: Path, what_if: What) -> None:
    change(folder, *DOUBLED)

    without = what_if()
    beside = typed(folder, "--against", "HEAD")

    assert without.code == 0
    assert without.out.splitlines()[1] == (
        "compared: the decisions of 4 steps, the names of 4 states, whole states in 0 of 4 (--against OLD compares all)"
    )
    assert beside.code == 1, beside.err
    assert beside.out.splitlines()[:7] == [
        "3 instances, 3 of them in flight; 7 events, with the code of today, beside that of HEAD",
        "compared: the decisions of 4 steps, the names of 4 states, whole states in 4 of 4",
        "",
        "Claims: the state InReview behind a step in New differs in euros",
        "  3 instances, 3 of them in flight; 3 steps",
        "  Claims/c-0 (running), position 2:",
        "    ~ InReview: euros: expected 900, is 1800",
    ]
    assert "Claims: the state InReview behind a step in InReview differs in euros" in beside.out
    assert "Not safe as it is: 3 of 3 instances in flight" in beside.out


def test_code_that_comes_to_the_same_states_is_not_said_to_differ(folder: Path, what_if: What) -> None:
    change(folder, "notes + 1", "1 + notes")

    report = what_if("--against", "HEAD", "--json")

    assert report.code == 0, report.err
    assert (report.document["safe"], report.document["against"]) == (True, "HEAD")
    assert report.document["compared"]["states"] == report.document["compared"]["states_passed"] == 4


def test_a_folder_stands_for_the_current_one(folder: Path, what_if: What, tmp_path: Path) -> None:
    old = tmp_path / "before"
    old.mkdir()
    (old / "claims.py").write_text(CLAIMS)
    change(folder, *DOUBLED)

    report = what_if("--against", "../before", "--json")

    assert report.document["compared"]["states"] == 4
    assert report.document["differing"] == 3
    assert [each.name for each in old.iterdir()] == ["claims.py"]


def test_an_export_is_held_against_old_code_too(folder: Path, what_if: What) -> None:
    exported = python(folder, "-m", "mainspring.cli", "export", "--app", "claims:app", "-o", "all.jsonl", "--payloads")
    assert exported.code == 0, exported.err
    (folder / "claims.db").unlink()
    change(folder, *DOUBLED)

    report = what_if("--from", "all.jsonl", "--against", "HEAD", "--json")

    assert (report.code, report.document["differing"]) == (1, 3)
    assert report.document["compared"]["states"] == 4
    assert not (folder / "claims.db").exists()


def test_packages_below_the_checkout_are_taken_from_the_revision(folder: Path, what_if: What) -> None:
    """What claims.py imports is old too, wherever in the checkout Python looks for it."""
    (folder / "lib").mkdir()
    (folder / "lib" / "sums.py").write_text("def doubled(euros):\n    return euros\n")
    uses = CLAIMS.replace(*DOUBLED).replace("2 * euros", "doubled(euros)")
    (folder / "claims.py").write_text(
        "import sys\nfrom pathlib import Path\n\nsys.path.insert(0, str(Path(__file__).parent / 'lib'))\n"
        f"from sums import doubled\n{uses}"
    )
    git(folder, "add", "lib", "claims.py")
    git(folder, "commit", "-m", "sums")
    (folder / "lib" / "sums.py").write_text("def doubled(euros):\n    return 2 * euros\n")

    report = what_if("--against", "HEAD", "--json")

    assert (report.code, report.document["differing"]) == (1, 3), report.err


@pytest.mark.parametrize("default", ["", " = 0"])
def test_a_renamed_field_is_told_as_gone_and_new_with_both_shapes(folder: Path, what_if: What, default: str) -> None:
    change(folder, "    euros: int\n    notes", f"    cents: int{default}\n    notes")

    report = what_if("--against", "HEAD")

    assert report.code == 1, report.err
    assert report.out.splitlines()[3:8] == [
        "Claims: the state InReview has another shape: euros is gone, cents is new",
        "  3 instances, 3 of them in flight; 4 steps",
        "  Claims/c-0 (running), position 2:",
        '    - InReview {"euros":900,"notes":0}',
        "    + InReview(cents=900, notes=0)",
    ]
    assert "differs in" not in report.out


def test_a_removed_field_is_a_difference(folder: Path, what_if: What) -> None:
    (folder / "claims.py").write_text(
        CLAIMS.replace("    notes: int = 0\n", "")
        .replace("case InReview(euros, notes)", "case InReview(euros)")
        .replace("InReview(euros, notes + 1)", "InReview(euros)")
    )

    report = what_if("--against", "HEAD", "--json")

    assert (report.code, report.document["differing"]) == (1, 3), report.err
    assert [each["what"] for each in report.document["differences"]] == [
        "the state InReview has another shape: notes is gone"
    ]


def test_a_new_field_with_a_default_is_named_and_is_no_difference(folder: Path, what_if: What) -> None:
    change(folder, "    notes: int = 0\n", '    notes: int = 0\n    by: str = "ann"\n')

    report = what_if("--against", "HEAD")

    assert report.code == 0, report.out
    assert report.out.splitlines()[1:] == [
        "compared: the decisions of 4 steps, the names of 4 states, whole states in 4 of 4",
        "new fields, compared with nothing: by of InReview in Claims",
        "",
        "No difference was found in what was compared, for 3 instances in flight.",
    ]


def test_beside_a_new_field_what_both_have_is_compared(folder: Path, what_if: What) -> None:
    filled = "    notes: int = 0\n    by: str = 'ann'\n"
    (folder / "claims.py").write_text(
        CLAIMS.replace("    notes: int = 0\n", filled).replace(DOUBLED[0], "return InReview(2 * euros, by='bob')\n")
    )

    report = what_if("--against", "HEAD", "--json").document

    assert {each["what"] for each in report["differences"]} == {
        f"the state InReview behind a step in {state} differs in euros" for state in ("New", "InReview")
    }
    assert report["new_fields"] == [
        {"workflow": "Claims", "workflow_version": 1, "state": "InReview", "fields": ["by"]}
    ]


def test_a_new_field_without_a_default_is_a_difference(folder: Path, what_if: What) -> None:
    (folder / "claims.py").write_text(
        CLAIMS.replace("    euros: int\n    notes", "    euros: int\n    by: str\n    notes")
        .replace("return InReview(euros)", "return InReview(euros, 'ann')")
        .replace("case InReview(euros, notes)", "case InReview(euros, by, notes)")
        .replace("InReview(euros, notes + 1)", "InReview(euros, by, notes + 1)")
    )

    report = what_if("--against", "HEAD", "--json")

    assert report.code == 1, report.err
    assert [each["what"] for each in report.document["differences"]] == [
        "the state InReview has another shape: by is new and has no default"
    ]


def test_a_state_that_today_cannot_read_is_a_difference_with_both_shapes(folder: Path, what_if: What) -> None:
    (folder / "claims.py").write_text(
        CLAIMS.replace("class InReview:\n    euros: int", "class InReview:\n    euros: str").replace(
            "return InReview(euros)", "return InReview(str(euros))"
        )
    )

    report = what_if("--against", "HEAD")

    assert report.code == 1, report.err
    what = "the state InReview has another shape: the old InReview cannot be read by today's code"
    assert f"Claims: {what}" in report.out
    assert '    - InReview {"euros":900' in report.out
    assert "    + InReview(euros='900', notes=0)" in report.out


def test_a_stream_that_the_old_code_cannot_fold_is_counted_with_the_reason(folder: Path, what_if: What) -> None:
    (folder / "claims.py").write_text(CLAIMS.replace("return InReview(euros, notes + 1)", "raise KeyError('planted')"))
    git(folder, "commit", "-am", "broken")
    (folder / "claims.py").write_text(CLAIMS)

    report = what_if("--against", "HEAD", "--json").document

    (unchecked,) = report["unchecked"]
    assert unchecked["why"] == (
        "the old code could not fold it to the end: evolve raises KeyError on Received(Note) in InReview"
    )
    assert (unchecked["instances"], unchecked["example"]) == (1, "Claims/c-0")
    assert (report["compared"]["states"], report["compared"]["states_passed"]) == (3, 4)


def test_old_code_without_the_workflow_is_told_and_not_called_the_same(folder: Path, what_if: What) -> None:
    (folder / "claims.py").write_text(CLAIMS.replace("app.add(Claims())", ""))
    git(folder, "commit", "-am", "none")
    (folder / "claims.py").write_text(CLAIMS)

    report = what_if("--against", "HEAD", "--json").document

    assert [each["why"] for each in report["unchecked"]] == [
        "the old code could not fold it to the end: this app has no workflow Claims"
    ]
    assert report["compared"]["states"] == 0


@pytest.mark.parametrize(
    ("old", "problem"),
    [
        ("v9", "git knows no such revision in"),
        ("--upload-pack=x", "git knows no such revision in"),
        ("HEAD", "cannot be asked: ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_what_cannot_be_compared_with_is_refused_in_one_line(folder: Path, old: str, problem: str) -> None:
    (folder / "claims.py").write_text(f"import nowhere\n{CLAIMS}")
    git(folder, "commit", "-am", "needs what is not installed")
    (folder / "claims.py").write_text(CLAIMS)

    refused = typed(folder, f"--against={old}")

    assert refused.code == 2, refused.out
    assert problem in refused.err
    assert refused.err.count("\n") == 1


def test_outside_of_a_checkout_only_a_folder_can_be_named(tmp_path: Path, recorded: bytes) -> None:
    (tmp_path / "claims.py").write_text(CLAIMS)
    (tmp_path / "claims.db").write_bytes(recorded)

    refused = typed(tmp_path, "--against", "HEAD")

    assert refused.code == 2
    assert "lies in no git checkout. Name the folder of the old code." in refused.err


def test_an_app_that_is_something_else_there_is_refused(folder: Path, what_if: What) -> None:
    (folder / "claims.py").write_text("app = 7\n")
    git(folder, "commit", "-am", "no app")
    (folder / "claims.py").write_text(CLAIMS)

    refused = what_if("--against", "HEAD")

    assert (refused.code, "claims:app is a int there, not a Mainspring" in refused.err) == (2, True)


def test_neither_the_checkout_nor_a_temporary_folder_is_left_changed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "temporary"
    elsewhere.mkdir()
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    change(folder, *DOUBLED)
    index = (folder / ".git" / "index").read_bytes()

    assert typed(folder, "--against", "HEAD").code == 1

    assert list(elsewhere.iterdir()) == []
    assert (folder / ".git" / "index").read_bytes() == index
    assert "2 * euros" in (folder / "claims.py").read_text()

"""`mainspring stats` and `mainspring stuck` on the examples' databases, read by people and by programs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from mainspring.cli.group import commands
from tests.unit.analysis.approved import approved
from tests.unit.analysis.example_apps import APPS

MOMENT = re.compile(r"[\d,]+\.?\d* (s|min|h|days|ms)\b")


def call(*arguments: str, example: str = "order_processing") -> Result:
    result = CliRunner().invoke(commands, [*arguments, "-a", f"tests.unit.analysis.example_apps:{example}"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("example", APPS)
def test_the_figures_of_an_example_are_those_that_were_approved(examples: Path, example: str) -> None:
    result = call("stats", example=example)
    assert result.exit_code == 0
    approved(f"stats/{example}.txt", result.stdout)


def test_the_document_of_an_example_is_the_one_that_was_approved(examples: Path) -> None:
    document = json.loads(call("stats", "--json").stdout)
    assert document.pop("at")
    approved("stats/order_processing.json", f"{json.dumps(document, indent=1)}\n")


def test_what_is_worth_a_look_stands_in_the_document_with_its_place(examples: Path) -> None:
    (found,) = json.loads(call("stats", "--json", example="credit_limit").stdout)["advice"]
    assert (found["kind"], found["workflow"]) == ("timer never fires", "OrderOnCredit")
    assert (found["subject"], found["figure"]) == ("CreditCheckTimedOut", "0 of 20")
    assert found["link"] == "#/workflows/OrderOnCredit"


def test_a_window_in_which_nothing_happened_counts_nothing(examples: Path) -> None:
    document = json.loads(call("stats", "--json", "--until", "2020-01-01").stdout)
    assert (document["events"], document["workflows"]) == (0, [])
    document = json.loads(
        call("stats", "--json", "--since", "2026-01-01T01:30Z", "--until", "2026-01-01T02:00Z").stdout
    )
    (workflow,) = document["workflows"]
    assert 0 < workflow["begun"] < 20


def test_an_unknown_workflow_has_no_figures_and_says_so(examples: Path) -> None:
    result = call("stats", "--workflow", "Nobody")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No such instances in sqlite:///order_processing.db" in result.stderr


def test_a_time_that_is_none_is_refused(examples: Path) -> None:
    result = call("stats", "--since", "yesterday")
    assert result.exit_code == 2
    assert "'yesterday' is no time" in result.stderr


def test_pictures_are_files_that_a_page_shows(examples: Path) -> None:
    assert call("stats", "--plots", "pictures").exit_code == 0
    page = Path("pictures/index.html").read_text()
    files = sorted(Path("pictures").glob("*.svg"))
    assert len(files) == 6
    for file in files:
        assert f'src="{file.name}"' in page
        root = ET.fromstring(file.read_text())  # noqa: S314  our own
        assert (root.findtext("{http://www.w3.org/2000/svg}title") or "").startswith("OrderProcessing: ")


def test_pictures_may_be_png(examples: Path) -> None:
    pytest.importorskip("resvg_py")
    assert call("stats", "--plots", "pictures", "--png").exit_code == 0
    files = sorted(Path("pictures").glob("*.png"))
    assert len(files) == 6
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


def test_png_without_its_library_says_what_to_install(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    result = call("stats", "--plots", "pictures", "--png")
    assert result.exit_code == 2
    assert "pip install 'mainspring[plots]'" in result.stderr
    assert not Path("pictures").exists()


def test_png_alone_is_refused(examples: Path) -> None:
    assert call("stats", "--png").exit_code == 2


def test_a_folder_that_cannot_be_written_is_told(examples: Path) -> None:
    Path("taken").write_text("")
    result = call("stats", "--plots", "taken/pictures")
    assert result.exit_code == 2
    assert "cannot be written to taken/pictures" in result.stderr


@pytest.mark.parametrize("example", APPS)
def test_the_stuck_ones_of_an_example_are_those_that_were_approved(examples: Path, example: str) -> None:
    result = call("stuck", example=example)
    assert result.exit_code in (0, 1)
    # How long ago the examples were played is another number every day, and so is the width of its column.
    approved(f"stuck/{example}.txt", re.sub(" {2,}", "  ", MOMENT.sub("so long", result.stdout)))


def test_stuck_ones_have_a_document_and_an_exit_code(examples: Path) -> None:
    result = call("stuck", "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["shown"], document["found"]) == (0, [], 0)

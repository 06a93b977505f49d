"""`mainspring docs`: pages that say what there is to say, in both formats, and nothing that is not true."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import apsw
import pytest

from examples.order_processing.workflow import OrderProcessing
from mainspring.analysis.diagram.diagram import diagram_of
from mainspring.analysis.documentation.pages import page_of
from mainspring.analysis.documentation.subject import Subject
from mainspring.analysis.files import write_whole
from mainspring.analysis.reading.machine import read_machine
from mainspring.analysis.reading.model import Machine
from tests.edges.cli.conftest import Ran, call
from tests.unit.analysis.approved import approved
from tests.unit.analysis.example_apps import WORKFLOWS

VOID = {"meta", "br", "img", "link"}


def docs(example: str, *arguments: str) -> Ran:
    return call("docs", "--app", f"tests.unit.analysis.example_apps:{example}", *arguments)


class Strict(HTMLParser):
    """Reads a page whose elements are all closed, and collects ids and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.elements: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        named = dict(attrs)
        if "id" in named:
            self.ids.append(named["id"] or "")
        if "href" in named:
            self.links.append(named["href"] or "")
        if tag not in VOID and not (self.get_starttag_text() or "").endswith("/>"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(path: Path) -> Strict:
    page = Strict()
    page.feed(path.read_text())
    page.close()
    assert page.open == []
    return page


@pytest.mark.parametrize("example", ["expense_approval", "order_inventory"])
def test_the_pages_of_an_example_with_its_history_are_the_approved_ones(examples: Path, example: str) -> None:
    ran = docs(example, "-o", "pages", "--history")

    assert (ran.code, ran.err) == (0, "")
    for path in sorted(Path("pages").iterdir()):
        # In which line something stands changes with every comment in an example.
        approved(f"docs/{example}/{path.name}", re.sub(r"(\.py:)\d+", r"\1…", path.read_text()))


@pytest.fixture(scope="session")
def sites(example_databases: Path) -> dict[str, Path]:
    """The HTML of every example, with its history."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(example_databases)
        for example in WORKFLOWS:
            assert docs(example, "-o", f"{example}.pages", "--format", "html", "--history").code == 0
    return {example: example_databases / f"{example}.pages" for example in WORKFLOWS}


def test_every_workflow_has_a_page_that_the_index_leads_to(sites: dict[str, Path]) -> None:
    for example, site in sites.items():
        names = [f"{workflow.__name__}.html" for workflow in WORKFLOWS[example]]

        assert read(site / "index.html").links == names
        assert sorted(path.name for path in site.iterdir()) == sorted(["index.html", *names])


def test_a_page_needs_nothing_beside_it_and_its_links_lead_somewhere(sites: dict[str, Path]) -> None:
    for path in (path for site in sites.values() for path in site.iterdir()):
        page = read(path)
        assert {"script", "img", "link", "iframe"} & set(page.elements) == set()
        assert "default-src 'none'" in path.read_text()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", path.read_text())
        assert len(page.ids) == len(set(page.ids))
        assert [link for link in page.links if not (path.parent / link.partition("#")[0]).exists()] == []


def test_the_table_of_transitions_has_every_transition_with_its_line(examples: Path) -> None:
    docs("order_processing", "-o", "pages")

    section = Path("pages/OrderProcessing.md").read_text().partition("## Transitions")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    for row, transition in zip(rows, read_machine(OrderProcessing).transitions, strict=True):
        assert row.startswith(f"| `{transition.source}` | `{transition.message}` |")
        assert transition.decided is None or f"`workflow.py:{transition.decided.line}`" in row


def test_contents_of_messages_are_told_only_where_they_are_asked_for(examples: Path) -> None:
    docs("order_processing", "-o", "closed", "--history")
    docs("order_processing", "-o", "open", "--history", "--payloads")

    assert "card-ann" not in Path("closed/OrderProcessing.md").read_text()
    assert "card-ann" in Path("open/OrderProcessing.md").read_text()


def test_a_page_of_a_workflow_that_is_gone_is_removed_and_other_files_stay(examples: Path) -> None:
    docs("order_inventory", "-o", "pages")
    Path("pages/README.md").write_text("# Ours\n")

    ran = docs("order_processing", "-o", "pages", "--json")

    assert ran.document == {
        "directory": "pages",
        "written": ["index.md", "OrderProcessing.md"],
        "removed": ["Inventory.md", "Order.md"],
    }
    assert sorted(path.name for path in Path("pages").iterdir()) == ["OrderProcessing.md", "README.md", "index.md"]


def test_the_same_code_writes_the_same_pages(examples: Path) -> None:
    docs("traffic_fine", "-o", "one")
    docs("traffic_fine", "-o", "two")

    assert [p.read_text() for p in sorted(Path("one").iterdir())] == [
        p.read_text() for p in sorted(Path("two").iterdir())
    ]


def test_payloads_without_history_are_refused(examples: Path) -> None:
    ran = docs("credit_limit", "-o", "pages", "--payloads")

    assert ran.code == 2
    assert ran.err == "Error: --payloads is about the stories, which come with --history.\n"
    assert not Path("pages").exists()


def test_a_file_is_replaced_whole_or_left_as_it_was(tmp_path: Path) -> None:
    write_whole(tmp_path / "page.md", "one")
    write_whole(tmp_path / "page.md", "two")
    (tmp_path / "folder").mkdir()

    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "folder", "three")

    assert (tmp_path / "page.md").read_text() == "two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "page.md"]


def test_a_story_that_cannot_be_read_any_more_is_left_out(examples: Path) -> None:
    database = apsw.Connection("traffic_fine.db")
    database.execute("UPDATE events SET body = zeroblob(3) WHERE type = 'SystemNumberGenerated'")
    database.close()

    assert docs("traffic_fine", "-o", "pages", "--history", "--payloads").code == 0

    stories = Path("pages/TrafficFine.md").read_text().partition("## Stories")[2]
    assert "completed in NoFineDue" in stories
    assert "completed in FineIssued" not in stories


def test_a_workflow_named_like_the_index_has_a_page_of_its_own(tmp_path: Path) -> None:
    page = page_of(Subject(Machine("index"), diagram_of(Machine("index"), None), (), (), (), {}, {}, frozenset()))

    assert (page.name, page.title) == ("index_", "index")

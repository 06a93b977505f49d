"""The site is built from pages that a forge shows as they are, and asks nobody for anything."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site import content, figures, names, studio_types, tables
from docs.site.asking import asking, asking_in
from docs.site.staging import ROOT, stage

# As `make docs` does it, in a process of its own: Sphinx changes the one that it runs in.
AS_MAKE_DOCS = """
import gc, sys
from pathlib import Path
from docs.site.__main__ import sphinx
gc.disable()  # a third of the time; all that it makes lives to the end
sys.exit(sphinx(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
"""
PICTURE = re.compile(r"!\[[^\]]*\]\((?:https?:)?//")


def sphinx(builder: str, pages: Path, into: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  ours
        [sys.executable, "-c", AS_MAKE_DOCS, builder, pages, into],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.soak  # in each run a page of its own is built, and links and their anchors are looked up in test_docs.py
def test_all_pages_are_read_and_their_links_found_without_a_warning(tmp_path: Path) -> None:
    stage(tmp_path / "pages")

    done = sphinx("dummy", tmp_path / "pages", tmp_path / "nothing")

    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "pages/src/mainspring/core/step.py.md").is_file(), "what pages link to is shown"


def test_a_link_that_leads_nowhere_fails_the_build_and_no_page_asks_anybody_for_anything(tmp_path: Path) -> None:
    """All pages are made by one theme, so one shows what it asks for; `make docs` looks at every page."""
    page = "# A page\n\n```python\nprint('x')\n```\n\n[nowhere](nowhere.md#at-all)\n"
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.md").write_text(page)

    done = sphinx("html", tmp_path / "pages", tmp_path / "html")

    assert done.returncode == 1
    assert "index.md:7: WARNING" in done.stderr
    assert "nowhere.md" in done.stderr
    assert "<h1>A page" in (tmp_path / "html/index.html").read_text()
    assert list(asking(tmp_path / "html")) == []


def test_no_page_shows_a_picture_from_elsewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").rglob("*.md")]

    assert [page for page in pages if PICTURE.search(page.read_text()) or list(asking_in(page.read_text()))] == []


@pytest.mark.parametrize(
    "planted",
    [
        '<script src="https://elsewhere.example/x.js">',
        "<img alt='' src='//elsewhere.example/x.png'>",
        '<link rel="stylesheet" href="https://elsewhere.example/x.css">',
        "@import url(https://elsewhere.example/x.css)",
        "src: url('https://elsewhere.example/font.woff2')",
    ],
)
def test_what_asks_somebody_would_be_found(planted: str) -> None:
    assert list(asking_in(planted))


@pytest.mark.parametrize("made", [names, tables, content, studio_types], ids=["api", "tables", "content", "types"])
def test_pages_that_come_from_code_are_current(made: object) -> None:
    assert made.PAGE.read_text() == made.page(), "run `python -m docs.site --pages`"  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.name)
def test_figures_on_pages_are_those_that_were_measured(page: Path) -> None:
    text = page.read_text()

    assert figures.BEGIN in text
    assert text == figures.filled(text), "run `python -m docs.site --pages`"


def test_every_page_of_the_docs_stands_in_an_index() -> None:
    linked = {
        (index.parent / target).resolve()
        for index in [ROOT / "README.md", *(ROOT / "docs").rglob("README.md")]
        for target in re.findall(r"\]\(([^)#\s]+)", index.read_text())
        if "://" not in target
    }
    pages = {page.resolve() for page in (ROOT / "docs").rglob("*.md")}

    assert pages - linked == set()

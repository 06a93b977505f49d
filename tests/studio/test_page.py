"""What the page is made of: nothing from elsewhere, nothing inline, and small."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.studio.serving import PAGE, SOURCES, needs_page

FIRST_PAGE_BYTES = 150_000
# Ways in which a text could become a part of the page that is more than a text.
NOT_TEXT = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|srcdoc|\beval\(|new Function"
)


def test_the_lock_file_pins_by_hash_and_names_no_registry() -> None:
    packages = json.loads((SOURCES / "package-lock.json").read_text())["packages"]
    installed = {name: package for name, package in packages.items() if name}

    assert installed
    assert [name for name, package in installed.items() if "resolved" in package] == []
    assert [name for name, package in installed.items() if not package.get("integrity", "").startswith("sha512-")] == []


def test_versions_are_exact() -> None:
    package = json.loads((SOURCES / "package.json").read_text())

    for version in (package["dependencies"] | package["devDependencies"]).values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)


def test_nothing_is_ever_taken_for_html() -> None:
    assert NOT_TEXT.search("element.innerHTML = text")
    written = [path for path in (SOURCES / "src").rglob("*") if path.suffix in {".ts", ".tsx"}]

    assert len(written) > 20
    assert [path.name for path in written if NOT_TEXT.search(path.read_text())] == []


@needs_page
def test_the_first_page_is_small() -> None:
    first = [PAGE / "index.html", *(PAGE / name for name in links(PAGE / "index.html"))]

    assert {path.suffix for path in first} == {".html", ".js", ".css", ".svg"}
    assert sum(path.stat().st_size for path in first) < FIRST_PAGE_BYTES


@needs_page
def test_the_page_has_nothing_inline_and_nothing_from_elsewhere() -> None:
    shell = (PAGE / "index.html").read_text()

    assert re.search(r"<style|\son\w+=|\sstyle=|<script(?![^>]*\ssrc=)", shell) is None
    assert [link for link in links(PAGE / "index.html") if not link.startswith("./")] == []
    for path in PAGE.iterdir():
        if path.suffix in {".js", ".css"}:
            # The names of XML's vocabularies are no addresses; nobody asks for them.
            addresses = set(re.findall(r"https?://[^\s\"'`)]+", path.read_text()))
            assert {address for address in addresses if not address.startswith("http://www.w3.org/")} == set()


@needs_page
def test_the_licences_of_what_is_bundled_come_along() -> None:
    text = (PAGE / "licences.txt").read_text()

    assert "preact" in text
    assert "@dagrejs/dagre" in text
    assert text.count("Permission is hereby granted, free of charge") >= 2


@pytest.mark.parametrize("sample", ["./app.js"])
def test_links_are_found(sample: str, tmp_path: Path) -> None:
    shell = tmp_path / "index.html"
    shell.write_text(f'<link href="{sample}"><script src="{sample}"></script>')

    assert links(shell) == [sample, sample]


def links(shell: Path) -> list[str]:
    """Return what a page loads."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(value for name, value in attrs if name in {"src", "href"} and value)

    Reader().feed(shell.read_text())
    return found

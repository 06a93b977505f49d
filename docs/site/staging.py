"""The pages as Sphinx wants them, in a folder that has the repository's own shape: so that links stay as they are.

What a page links to comes along: another page as it is, a picture as it is, a file of code as a page that shows it, a
folder as its README or as a list of what is in it. An index page gets a hidden menu of the pages that it links to.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from docs.site import names, routes

ROOT = Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"(?P<before>!?\[[^\]]*\]\()(?P<target>[^)#\s]+)?(?P<anchor>#[^)\s]*)?\)")
FENCED = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
PICTURES = {".png", ".svg"}
# The forge's first page of the documentation. On the site the menu is it, and a second one would hold every page twice.
FORGE = Path("docs/README.md")
ORPHAN = "---\norphan: true\n---\n\n"
LANGUAGES = {
    ".py": "python",
    ".sql": "sql",
    ".sh": "sh",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
}
# The menu of the first page: where a reader begins comes first.
SECTIONS = {
    "Learn": ["docs/tutorial/README.md", "docs/coming-from/README.md"],
    "Do": ["docs/how-to/README.md", "docs/operations/README.md"],
    "Look up": ["docs/reference/README.md", "docs/features.md", "docs/promises.md", "CHANGELOG.md"],
    "Understand": ["docs/concepts/README.md", "bench/RESULTS.md", "bench/README.md"],
    "Work on it": [
        "CONTRIBUTING.md",
        "docs/internals/README.md",
        "docs/decisions/README.md",
        "SECURITY.md",
    ],
}


def stage(folder: Path) -> None:
    """Put everything that the site is made of into a folder."""
    Stage(folder).run()


class Stage:
    """What was staged, and what is still to be."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting = [Path("README.md")]
        self._waiting += [Path(page) for pages in SECTIONS.values() for page in pages]
        self._waiting += [path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*.md"))]
        self._seen: set[Path] = set()

    def run(self) -> None:
        """Stage page after page, with all that they link to."""
        while self._waiting:
            path = self._waiting.pop()
            if path not in self._seen:
                self._seen.add(path)
                self._put(path)
        self._write(routes.DOCUMENT.relative_to(ROOT), routes.written())

    def _put(self, path: Path) -> None:
        source = ROOT / path
        if path.suffix in PICTURES:
            self._write(path, source)
        elif path.suffix == ".md":
            self._write(staged(path), self._page(path))
        elif source.is_dir():
            self._write(path / "README.md", _listing(path))
            self._waiting += [path / name for name in _names(path)]
        else:
            self._write(staged(path), _view(path))

    def _page(self, path: Path) -> str:
        text = (ROOT / path).read_text()
        for made in (names, routes):
            if path == made.PAGE.relative_to(ROOT):
                text += f"\n{made.details()}"
        linked: list[Path] = []

        def rewritten(found: re.Match[str]) -> str:
            target, anchor = found["target"], found["anchor"] or ""
            if not target or "://" in target or target == routes.DOCUMENT.name:
                return found[0]
            there = _resolved(path, target)
            if not (ROOT / there).exists():
                return found[0]  # Sphinx says where it stands
            self._waiting.append(there)
            if not found["before"].startswith("!"):
                linked.append(staged(there))
            return f"{found['before']}{os.path.relpath(staged(there), path.parent)}{anchor})"

        text = _outside_code(text, rewritten)
        return ORPHAN + text if _is_beside_the_menu(path) else text + "".join(_menus(path, linked))

    def _write(self, path: Path, what: str | Path) -> None:
        target = self._folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, Path):
            shutil.copy(what, target)
        else:
            target.write_text(what)


def staged(path: Path) -> Path:
    """Return where something stands among the staged pages.

    >>> staged(Path("README.md")), staged(Path("src/a.py")), staged(Path("docs/decisions"))
    (PosixPath('index.md'), PosixPath('src/a.py.md'), PosixPath('docs/decisions/README.md'))
    """
    if path == Path("README.md"):
        return Path("index.md")
    if path.suffix == ".md" or path.suffix in PICTURES:
        return path
    if (ROOT / path).is_dir():
        return path / "README.md"
    return path.with_name(f"{path.name}.md")


def _resolved(page: Path, target: str) -> Path:
    there = Path(os.path.normpath(page.parent / target))
    readme = there / "README.md"
    return readme if (ROOT / readme).is_file() else there


def _outside_code(text: str, rewritten: Callable[[re.Match[str]], str]) -> str:
    """Rewrite links, but nothing that only looks like one inside code. A link's own text may be code."""
    codes: list[str] = []

    def hide(code: re.Match[str]) -> str:
        codes.append(code[0])
        return f"\0{len(codes) - 1}\0"

    return re.sub(r"\0(\d+)\0", lambda found: codes[int(found[1])], LINK.sub(rewritten, FENCED.sub(hide, text)))


def _menus(path: Path, linked: list[Path]) -> Iterator[str]:
    if path == Path("README.md"):
        for caption, pages in SECTIONS.items():
            yield _menu([Path(page) for page in pages if (ROOT / page).exists()], path, caption)
    elif path.name == "README.md":
        below = [there for there in dict.fromkeys(linked) if path.parent in there.parents and there != path]
        yield _menu([there for there in below if _is_page(there)], path, None)


def _is_beside_the_menu(path: Path) -> bool:
    """Return True if a page is reached by links alone: what lies beside code is."""
    in_menus = (
        path.parts[0] == "docs" or path.parent == Path() or str(path) in {p for s in SECTIONS.values() for p in s}
    )
    return path == FORGE or not in_menus


def _is_page(there: Path) -> bool:
    return (ROOT / there).is_file() and there.suffix == ".md"


def _menu(pages: list[Path], path: Path, caption: str | None) -> str:
    if not pages:
        return ""
    options = [":hidden:", ":titlesonly:", *([f":caption: {caption}"] if caption else [])]
    lines = [os.path.relpath(page, path.parent) for page in pages]
    return "\n".join(["\n```{toctree}", *options, "", *lines, "```\n"])


def _listing(path: Path) -> str:
    links = [f"- [{name}]({os.path.relpath(staged(path / name), path)})" for name in _names(path)]
    return ORPHAN + "\n".join([f"# {path}", "", *links, ""])


def _names(path: Path) -> list[str]:
    kept = [entry for entry in sorted((ROOT / path).iterdir()) if not entry.name.startswith(("_", "."))]
    return [entry.name for entry in kept if entry.is_dir() or entry.suffix in {*LANGUAGES, *PICTURES, ".md"}]


def _view(path: Path) -> str:
    language = LANGUAGES.get(path.suffix, "text")
    text = (ROOT / path).read_text().rstrip("\n")
    return ORPHAN + "\n".join([f"# {path}", "", f"````{language}", text, "````", ""])

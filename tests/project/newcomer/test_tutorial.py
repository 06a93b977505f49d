"""A newcomer follows the tutorial, block by block, with the package as it is installed, and sees what stands there."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.project.newcomer.merging import merged
from tests.project.newcomer.newcomer import Newcomer
from tests.project.newcomer.pages import CHAPTERS, ROOT, Written, blocks

EXAMPLE = ROOT / "examples/group_checkout/workflow.py"
# The chapter behind which the workflow is the example; the last one changes it once more.
COMPLETE_AFTER = "5-time.md"
# What is written and typed; a soak goes on to time, kills and changes.
IN_EACH_RUN = 4
TESTS = "python -m pytest -q"


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel and what it depends on, and nothing of the source tree."""
    folder = tmp_path_factory.mktemp("clean")
    wheel = built(folder)
    venv.create(folder / "venv", symlinks=True)
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    shutil.unpack_archive(wheel, site, "zip")
    # Dependencies are those of this environment: found there, not fetched. A path in a .pth file brings no other .pth
    # file with it, so the source tree, which is installed there as editable, stays unknown.
    (site / "dependencies.pth").write_text(f"{Path(pytest.__file__).parent.parent}\n")
    programs = folder / "venv/bin"
    command = programs / "mainspring"
    command.write_text(f"#!{programs / 'python'}\nimport sys\nfrom mainspring.cli import main\nsys.exit(main())\n")
    command.chmod(0o755)
    return programs


def built(folder: Path) -> Path:
    # Without the studio's page, which no chapter opens in a browser: building it may need Node.
    done = subprocess.run(  # noqa: S603  ours
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"HATCH_BUILD_NO_HOOKS": "true", "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.parametrize(
    "chapters", [CHAPTERS[:IN_EACH_RUN], pytest.param(CHAPTERS, marks=pytest.mark.soak)], ids=["first", "all"]
)
def test_a_newcomer_with_the_wheel_alone_sees_what_the_tutorial_says(
    chapters: list[Path], clean: Path, tmp_path: Path
) -> None:
    newcomer = Newcomer(tmp_path, clean)

    for chapter in chapters:
        newcomer.follow(chapter)

    assert newcomer.differences == [], "\n\n".join(newcomer.differences)


def test_what_is_written_in_the_later_chapters_runs(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, Path(sys.executable).parent)

    for chapter in CHAPTERS:
        newcomer.follow(chapter, only={TESTS} if chapter.name == COMPLETE_AFTER else ())

    assert newcomer.differences == [], "\n\n".join(newcomer.differences)
    assert newcomer.type("python hotel.py && echo It ran.").endswith("It ran.\n")


def test_the_newcomer_has_nothing_of_the_source_tree(clean: Path, tmp_path: Path) -> None:
    told = subprocess.run(  # noqa: S603  ours
        [clean / "python", "-c", "import mainspring, sys; print(mainspring.__file__, *sys.path)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={},
    ).stdout

    assert told.startswith(str(clean.parent))
    assert str(ROOT / "src") not in told


def test_the_tutorial_ends_at_the_example() -> None:
    workflow = ""
    for chapter in CHAPTERS[: [chapter.name for chapter in CHAPTERS].index(COMPLETE_AFTER) + 1]:
        for block in blocks(chapter.read_text()):
            if isinstance(block, Written) and block.name == "checkout.py":
                workflow = merged(workflow, block.text) if block.changed else block.text

    assert statements(workflow) == statements(EXAMPLE.read_text())


def statements(module: str) -> set[str]:
    """Return what a module does, in whatever order it stands there; without its docstring."""
    return {ast.dump(node) for node in ast.parse(module).body if not isinstance(node, ast.Expr)}


def test_a_chapter_that_says_something_else_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n# a.py\nprint('Hello')\n```\n\n```console\n$ python3 a.py\nGood bye\n```\n")
    newcomer = Newcomer(tmp_path, Path(sys.executable).parent)

    seen = newcomer.follow(page)

    assert len(newcomer.differences) == 1
    assert "+Hello" in newcomer.differences[0]
    assert "$ python3 a.py\nHello\n```" in seen

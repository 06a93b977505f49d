"""What the README shows is what its program makes."""

from __future__ import annotations

import asyncio
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from mainspring.core.story import tell
from tests.project.test_docs import FENCE, ROOT

README = (ROOT / "README.md").read_text()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The README's blocks as a module in a folder of its own, whose program has run."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "orders.py"
    path.write_text("\n".join(block[1] for block in FENCE.finditer(README)))
    spec = spec_from_loader("orders", SourceFileLoader("orders", str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "orders", module)
    spec.loader.exec_module(module)
    asyncio.run(module.main())
    return module


async def stream_of(program: Any) -> list[str]:
    await program.app.start(work=False)
    try:
        rows = tell(await program.app.instance(program.fulfil, "o-1").stream())
    finally:
        await program.app.stop()
    return ["|" + "|".join(f" {cell} " if cell else " " for cell in _cells(row.cells())) + "|" for row in rows]


def _cells(cells: tuple[str, ...]) -> tuple[str, ...]:
    *others, message = cells
    return (*others, f"`{message}`" if message else "")


def test_the_stream_on_the_readme_is_the_one_that_its_program_makes(program: Any) -> None:
    table = "\n".join(asyncio.run(stream_of(program)))

    assert table in README


def test_the_first_example_has_at_most_25_lines_of_code() -> None:
    first = next(FENCE.finditer(README))[1]
    code = [line for line in first.splitlines() if line.strip()]

    assert len(code) <= 25

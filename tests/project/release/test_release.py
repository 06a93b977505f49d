"""A release is what it says: the same bytes from the same sources, complete, typed, and under agreed licences."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from release.licences import not_agreed
from release.materials import NAME, ROOT, hashes, materials
from release.sbom import sbom

USER = """
from dataclasses import dataclass
from mainspring import Complete, Decisions, Event, Mainspring, Received, Send, Workflow

@dataclass(frozen=True)
class Ask:
    id: str

@dataclass(frozen=True)
class Answered:
    id: str

@dataclass(frozen=True)
class Look:
    id: str

class Asking(Workflow[Ask | Answered, str, Look]):
    begins, initial_state = Ask, "new"

    def decide(self, message: Ask | Answered, state: str) -> Decisions[Ask | Answered, Look]:
        return [Send(Look(message.id))] if state == "new" else [Complete()]

    def evolve(self, state: str, event: Event[Ask | Answered, Look]) -> str:
        reveal_type(event)
        return "waiting" if isinstance(event, Received) else state

class Wrong(Workflow[Ask, str, Look]):
    initial_state = "new"

    def decide(self, message: Ask, state: str) -> Decisions[Ask, Look]:
        return [Send(Ask("an input"))]

    def evolve(self, state: str, event: Event[Ask, Look]) -> str:
        return 1

app = Mainspring("memory://")
app.add(Asking())

@app.handler
async def look(command: Look) -> Answered:
    return Answered(command.id)

async def main() -> None:
    reveal_type(await app.instance(Asking, "a-1").state())
    await app.send(Ask("a-1"), id=7)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same release, built twice."""
    return build(tmp_path_factory.mktemp("first")), build(tmp_path_factory.mktemp("second"))


def build(folder: Path) -> Path:
    # Without the studio's page, which needs Node where it was not built before.
    done = subprocess.run(  # noqa: S603  ours
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"HATCH_BUILD_NO_HOOKS": "true", "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_same_sources_give_the_same_bytes(built: tuple[Path, Path]) -> None:
    first, second = ({each.name: digest(each) for each in folder.iterdir()} for folder in built)
    assert len(first) == 2
    assert first == second


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_wheel_has_all_that_the_package_reads_and_nothing_else(built: tuple[Path, Path]) -> None:
    (wheel,) = built[0].glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    there = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and "web/page" not in path.as_posix()
    }
    assert {name for name in packed if "web/page/" not in name} == there
    assert "mainspring/py.typed" in packed


def test_the_source_distribution_has_what_building_needs(built: tuple[Path, Path]) -> None:
    (packed,) = built[0].glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "studio/hook.py", "src/mainspring/__init__.py"} <= names


def test_every_licence_was_agreed_to() -> None:
    assert not_agreed() == []


def test_the_bill_names_everything_that_an_installation_brings() -> None:
    bill = sbom()
    named = {each["purl"] for each in bill["components"]}
    assert {each.purl for each in materials().values() if each.name != NAME} <= named
    assert any(purl.startswith("pkg:npm/preact@") for purl in named)
    assert {need for each in bill["dependencies"] for need in each["dependsOn"]} <= named


def test_what_is_installed_is_what_the_lock_file_names() -> None:
    locked = hashes()
    assert [name for name, each in materials().items() if name != NAME and (name, each.version) not in locked] == []


def test_a_users_code_is_checked_against_the_types_that_are_shipped(built: tuple[Path, Path], tmp_path: Path) -> None:
    (wheel,) = built[0].glob("*.whl")
    shutil.unpack_archive(wheel, tmp_path / "site", "zip")
    (tmp_path / "shop.py").write_text(USER)
    (tmp_path / "pyrightconfig.json").write_text(
        '{"typeCheckingMode": "standard", "extraPaths": ["site"], "include": ["shop.py"]}'
    )
    checker = Path(sys.executable).with_name("basedpyright")
    command = [checker, "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603  ours
    told = re.findall(r"shop\.py:(\d+):\d+ - (error|information): (.*)", done.stdout)
    lines = USER.splitlines()
    assert [(kind, lines[int(number) - 1].strip()) for number, kind, _ in told] == [
        ("information", "reveal_type(event)"),
        ("error", 'return [Send(Ask("an input"))]'),
        ("error", "return 1"),
        ("information", 'reveal_type(await app.instance(Asking, "a-1").state())'),
        ("error", 'await app.send(Ask("a-1"), id=7)'),
    ], done.stdout
    assert "Received[Ask | Answered]" in told[0][2]
    assert "Sent[Look]" in told[0][2]
    assert told[3][2].endswith('is "str"')

"""Bodies from outside: every boundary that reads bytes answers the same."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.cli.group import commands
from mainspring.codec import Codec
from mainspring.errors import CodecError
from tests.edges.bad_input.inputs import BODIES, Case, named
from tests.edges.bad_input.misbehaving import Note, desk

MODULE: Final = """
from mainspring import Mainspring
from tests.edges.bad_input.misbehaving import desk

app = desk(Mainspring("sqlite:///desk.db"))
"""


@pytest.fixture(scope="module")
def codec() -> Codec:
    return internals_of(desk(Mainspring("memory://"))).registry.codec


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "body_desk.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MAINSPRING_APP", "body_desk:app")
    monkeypatch.delenv("MAINSPRING_DEBUG", raising=False)
    return tmp_path


@pytest.mark.parametrize("case", BODIES, ids=named)
def test_the_codec_refuses_a_bad_body(codec: Codec, case: Case) -> None:
    with pytest.raises(case.error, match=case.says) as caught:
        codec.decode_outside("Note", 1, case.given)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("case", BODIES, ids=named)
def test_a_file_given_to_the_command_line_is_refused_in_one_line(folder: Path, case: Case) -> None:
    result = CliRunner().invoke(commands, ["send", "Note", "-"], input=case.given, prog_name="mainspring")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: Note: ")
    assert case.says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.strip().isprintable()
    listed = CliRunner().invoke(commands, ["ls", "--json"], prog_name="mainspring")
    assert (listed.exit_code, listed.stdout) == (0, "")


@pytest.mark.parametrize("case", [case for case in BODIES if len(case.given) < 200], ids=named)
def test_an_argument_of_the_command_line_is_refused_in_one_line(folder: Path, case: Case) -> None:
    text = case.given.decode(errors="surrogateescape")
    result = CliRunner().invoke(commands, ["send", "Note", text], prog_name="mainspring")
    assert result.exit_code == 2
    assert case.says in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("case", BODIES, ids=named)
def test_stored_bytes_raise_nothing_but_what_is_theirs(codec: Codec, case: Case) -> None:
    """What is in the database was checked when it came; if it was edited, it is an error of the codec, or sound."""
    try:
        found = codec.decode("Note", 1, case.given)
    except CodecError:
        return
    assert isinstance(found, Note)

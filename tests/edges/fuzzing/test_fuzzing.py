"""The fuzzing in short: some inputs for each reader, the same each time. `python -m tests.edges.fuzzing` has more."""

import ast
from pathlib import Path

import pytest

from tests.edges.fuzzing import fuzz as fuzzing
from tests.edges.fuzzing.decoders import FED, NOT_FED, calls, decoders
from tests.edges.fuzzing.fuzz import CORPUS, Reader, fuzz
from tests.edges.fuzzing.readers import readers

INPUTS = 60


def test_no_reader_stumbles_over_anything_but_what_it_names() -> None:
    with readers() as known:
        found = [fuzz(reader, INPUTS) for reader in known]
    assert [fault for each in found for fault in each.faults] == []
    # One that refuses all of its seeds is not asked what it reads.
    assert [each.reader for each in found if not each.accepted] == []


def test_every_reader_has_seeds_and_every_seed_a_reader() -> None:
    with readers() as known:
        assert sorted(path.name for path in CORPUS.iterdir()) == sorted(reader.name for reader in known)


def test_every_decoder_in_the_source_has_a_reader_or_a_reason_to_have_none() -> None:
    """One that is new, moved or gone has to be said in `decoders.py`."""
    assert decoders() == FED.keys() | NOT_FED.keys()
    assert not FED.keys() & NOT_FED.keys()
    with readers() as known:
        assert {name for names in FED.values() for name in names} <= {reader.name for reader in known}


@pytest.mark.parametrize(
    ("code", "inside"),
    [
        ("_read = msgspec.json.Decoder(Row).decode", [""]),
        ("def read(b):\n    return [json.decode(part) for part in b]", ["read"]),
        ("class A:\n    async def read(self):\n        return tomllib.loads(self.text)", ["read"]),
        ("read = json.decode", [""]),
        ("def read(b):\n    return b.decode()", []),
    ],
)
def test_a_decoder_is_seen_wherever_it_stands(code: str, inside: list[str]) -> None:
    assert sorted(set(calls(ast.parse(code), ""))) == inside


def test_a_planted_fault_is_found_and_told_with_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "seed").write_bytes(b'{"door":"front"}')
    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path)

    def read(data: bytes) -> str:
        if b"\\u0000" in data:
            raise ZeroDivisionError
        return data.decode("ascii")

    found = fuzz(Reader("planted", read, (UnicodeDecodeError,)), 2_000)
    assert {fault.partition(";")[0] for fault in found.faults} == {"planted: ZeroDivisionError: "}
    assert any("u0000" in fault for fault in found.faults)  # long ones are cut
    assert fuzz(Reader("planted", read, (UnicodeDecodeError, ZeroDivisionError)), 2_000).faults == []


def test_the_same_seed_makes_the_same_inputs() -> None:
    seen: list[list[bytes]] = [[], [], []]
    for place, seed in enumerate((1, 1, 2)):
        fuzz(Reader("message", seen[place].append), 50, seed)
    assert seen[0] == seen[1] != seen[2]

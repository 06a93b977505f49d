"""What a file holds sealed is opened, or refused by name: nobody takes it for a message."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from mainspring.analysis.export.stream_file import read_file
from mainspring.errors import DamagedRecordError, OperationError
from mainspring.port.records import EventRow, Ref
from mainspring.sealing import Compressed, Encrypted, Seal, StaticKeys
from mainspring.stores.sealed.files import opened_event, sealed_event

ENCRYPTED = Encrypted(StaticKeys({"2026": bytes(32)}))
REF = Ref("Orders", "o-1")
ROW = EventRow(2, "Received", 0, "PlaceOrder", 1, b'{"card":"4111"}', b'{"reason":"no"}')


@pytest.mark.parametrize("seal", [ENCRYPTED, Compressed(), Compressed(least_bytes=1)])
def test_what_was_sealed_is_opened(seal: Seal) -> None:
    assert opened_event(REF, sealed_event(REF, ROW, seal), seal) == ROW


@pytest.mark.parametrize("held", ["abc", "AAAA", "", "e30=!", "{}", "\\u0041AAA", "é", base64.b64encode(b"{").decode()])
@pytest.mark.parametrize("seal", [ENCRYPTED, Compressed()])
def test_what_no_seal_has_made_is_refused_by_name(held: str, seal: Seal, tmp_path: Path) -> None:
    event = '{"line":"event","workflow":"Orders","instance":"o-1","version":2,"event":"Received","type":"PlaceOrder",'
    file = tmp_path / "archive.jsonl"
    for field in ("body", "detail"):
        file.write_text(f'{event}"{field}":{{"$sealed":"{held}"}}}}\n')
        with pytest.raises(OperationError, match="Orders/o-1 is damaged in this file"):
            list(read_file(file, seal))


def test_what_was_changed_is_a_damaged_record() -> None:
    sealed = sealed_event(REF, ROW, ENCRYPTED)
    with pytest.raises(DamagedRecordError):
        opened_event(Ref("Orders", "o-2"), sealed, ENCRYPTED)

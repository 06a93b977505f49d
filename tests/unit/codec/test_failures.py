"""What a workflow hears of failures: one name for what went wrong, and stored as older releases wrote and read it."""

from mainspring.analysis.export.redaction import MARKER, Redaction
from mainspring.codec import Codec
from mainspring.core.failures import ChildFailed, SendFailed
from mainspring.engine.recording.fan_out_parts import PartDone

CODEC = Codec()
CODEC.register(ChildFailed, PartDone)
OLDER = b'{"child":"Parcel/p-1","status":"failed","reason":"lost","part":null}'
LOST = ChildFailed("Parcel/p-1", "failed", "lost")


def test_a_child_that_failed_and_a_command_that_did_say_why_under_one_name() -> None:
    assert (SendFailed("Charge", "o-1/3", "lost", 1).error, LOST.error) == ("lost", "lost")
    assert ChildFailed(child="Parcel/p-1", status="failed", error="lost") == LOST
    match LOST:
        case ChildFailed(child, status, error, part):
            assert (child, status, error, part) == ("Parcel/p-1", "failed", "lost", None)


def test_a_child_that_failed_is_stored_as_older_releases_read_it() -> None:
    assert CODEC.encode(LOST).body == OLDER
    assert CODEC.decode("mainspring.ChildFailed", 1, OLDER) == LOST
    part = PartDone(failure=LOST)
    assert OLDER in CODEC.encode(part).body
    assert CODEC.decode(*_stored(part)) == part


def _stored(message: object) -> tuple[str, int, bytes]:
    encoded = CODEC.encode(message)
    return encoded.name, encoded.version, encoded.body


def test_a_failed_command_of_an_older_release_is_read_without_its_data() -> None:
    codec = Codec()
    codec.register(SendFailed)
    older = b'{"type":"Charge","message_id":"Orders/o-1/3","error":"no","attempts":1,"definite":true}'

    assert codec.decode("SendFailed", 1, older) == SendFailed("Charge", "Orders/o-1/3", "no", 1, definite=True)


def test_a_failed_commands_data_is_redacted_where_anything_is() -> None:
    """It has no type of its own there that a field could be named with."""
    redaction = Redaction(payloads=True, fields=["Charge.card"])
    codec = Codec()
    codec.register(SendFailed)
    body = codec.encode(SendFailed("Charge", "Orders/o-1/3", "no", 1, command={"card": "4111"})).body

    assert b"4111" not in redaction.body("SendFailed", body)
    assert redaction.hides("SendFailed", "command")


def test_what_it_says_is_redacted_as_stored_and_as_an_attribute() -> None:
    redaction = Redaction(payloads=True, fields=["card"])

    assert MARKER.encode() in redaction.body("mainspring.ChildFailed", OLDER)
    assert redaction.hides("mainspring.ChildFailed", "error")

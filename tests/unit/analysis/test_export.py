"""Export: what is written, what is not, and that other tools, and what-if, can read it."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import apsw
import msgspec
import pytest

from mainspring import Envelope, Mainspring, RefuseAnswer
from mainspring.analysis.export.event_logs import Activities, OcelWriter
from mainspring.analysis.export.export import Exported, export
from mainspring.analysis.export.redaction import MARKER, Outgoing, Redaction
from mainspring.analysis.export.stream_file import StreamWriter
from mainspring.analysis.streams import DAMAGED
from mainspring.analysis.what_if.check import check, check_file
from mainspring.app.internals import internals_of
from mainspring.engine.recording.event_details import Detail, Packed, encode_detail
from mainspring.engine.recording.fan_out_parts import Parts
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import OperationError, SettingError, TaskRefusedError
from mainspring.port.records import EventRow, InstanceFilter, InstanceRow, Ref
from mainspring.testing.samples import Asking, Leave, LeaveRequests, RequestLeave
from tests.unit.analysis.refunds import Refund, fill, refunds, running
from tests.unit.analysis.standards import read_ocel, read_xes, xes_faults

WHOLE = Redaction(payloads=True)


@pytest.fixture
def app(tmp_path: Path) -> Mainspring:
    """An app with six claims in its database."""
    url = f"sqlite:///{tmp_path / 'refunds.db'}"
    running(refunds(url), fill, work=True)
    return refunds(url)


def exported(app: Mainspring, path: Path, **settings: Any) -> Exported:
    return running(app, lambda app: export(internals_of(app).engine.store, path, **settings))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---- JSON lines


def test_streams_are_written_line_by_line(app: Mainspring, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl"

    assert exported(app, path, redaction=WHOLE) == Exported(6, 31)

    head, first, *rest = lines(path)
    assert (head["line"], head["format"], head["version"], head["payloads"]) == ("file", "mainspring.streams", 1, True)
    assert (first["line"], first["instance"], first["status"], first["version"]) == (
        "instance",
        "small-1",
        "completed",
        4,
    )
    began, initiated, published, completed = rest[:4]
    assert (began["event"], completed["event"]) == ("Began", "Completed")
    assert initiated["body"] == {"id": "small-1", "amount": 20, "card": "4111-card"}
    assert (initiated["actor"], initiated["state"], initiated["message_id"]) == ("ann", "InReview", "m-1")
    assert (published["type"], published["cause"]) == ("Paid", 2)
    assert rest[-1] == {"line": "end", "instances": 6, "events": 31}


def test_no_message_leaves_unless_it_is_asked_for(app: Mainspring, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl"
    exported(app, path)

    text = path.read_text()
    assert "4111-card" not in text
    assert "note 1" not in text
    assert '"body"' not in text
    (claim,) = [line for line in lines(path) if line.get("message_id") == "m-1"]
    assert (claim["type"], claim["gone"]) == ("Claim", "left out")


def test_a_file_that_is_read_back_is_checked_as_the_database_is(
    app: Mainspring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "streams.jsonl.gz"
    exported(app, path, redaction=WHOLE)
    assert gzip.decompress(path.read_bytes()).startswith(b'{"line":"file"')
    monkeypatch.setattr(Refund, "limit", 200)

    from_database = running(refunds(internals_of(app).url), check)
    from_file = check_file(refunds("memory://"), path)

    assert not from_file.safe
    assert from_file.differences == from_database.differences
    assert (from_file.instances, from_file.in_flight, from_file.events) == (6, 3, 31)
    assert from_file.compared.decisions == from_database.compared.decisions


def test_a_file_whose_compression_is_damaged_is_told(app: Mainspring, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl.gz"
    exported(app, path, redaction=WHOLE)
    packed = bytearray(path.read_bytes())
    packed[40:60] = bytes(byte ^ 0xFF for byte in packed[40:60])
    path.write_bytes(packed)

    with pytest.raises(OperationError, match="cannot be read"):
        check_file(refunds("memory://"), path)


def test_what_is_redacted_is_marked_and_not_checked(app: Mainspring, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl"
    exported(app, path, redaction=Redaction(payloads=True, fields=["Note.text"]))

    assert "note 1" not in path.read_text()
    report = check_file(refunds("memory://"), path)
    (unchecked,) = report.unchecked
    assert (unchecked.why, unchecked.example) == ("a part of its stream was redacted", "Refund/noted")
    assert report.compared.decisions == 7
    assert report.safe


class GuardedLeave(LeaveRequests):
    """Takes no answer at all."""

    name = "LeaveRequests"

    def decide(self, envelope: Envelope[Any], state: Asking) -> Any:
        refuses = isinstance(envelope.message, Leave)
        return [RefuseAnswer("ask why first")] if refuses else super().decide(envelope, state)


def test_a_redacted_answer_that_was_refused_is_no_part_of_the_step_before_it(tmp_path: Path) -> None:
    url, path = f"sqlite:///{tmp_path / 'leave.db'}", tmp_path / "streams.jsonl"

    def leave(url: str) -> Mainspring:
        made = Mainspring(url)
        made.add(GuardedLeave())
        return made

    async def refuse(app: Mainspring) -> None:
        await app.send(RequestLeave("l-1"))
        with pytest.raises(TaskRefusedError):
            await app.tasks.complete("LeaveRequests/l-1/3", Leave("l-1", granted=True), actor="bob", roles=["manager"])

    running(leave(url), refuse, work=True)
    exported(leave(url), path, redaction=Redaction(payloads=True, fields=["Leave.granted"]))
    assert check_file(leave("memory://"), path).compared.decisions == 1


def test_an_error_of_an_instance_does_not_quote_what_is_redacted() -> None:
    error = "ValueError: 4111 was refused"
    row = InstanceRow(7, "Refund", "c-1", 2, "suspended", None, error, 1, b"{}", 0, 0)

    def written(redaction: Redaction) -> Any:
        file = io.BytesIO()
        StreamWriter(file, redaction).instance(row)
        return json.loads(file.getvalue()).get("error")

    assert written(Redaction(payloads=True, fields=["card"])) == "ValueError"
    assert (written(WHOLE), written(Redaction())) == (error, None)


def test_a_list_that_was_changed_is_not_given_back_what_was_redacted_in_it() -> None:
    redaction = Redaction(payloads=True, fields=["Line.card"])
    stored = b'{"lines":[{"$type":"Line","card":"4111"},{"$type":"Line","card":"5500"}]}'
    shown = redaction.body("Order", stored)

    assert redaction.restored("Order", shown, stored) == stored
    longer = shown.replace(b"[{", b'[{"$type":"Line","card":"6011"},{', 1)
    with pytest.raises(SettingError, match="card"):
        redaction.restored("Order", longer, stored)
    with pytest.raises(SettingError, match="card"):
        redaction.restored("Order", shown, b"no JSON")


def test_a_step_of_which_a_part_was_redacted_is_not_judged(app: Mainspring, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl"
    exported(app, path, redaction=Redaction(payloads=True, fields=["Review.amount"]))

    report = check_file(refunds("memory://"), path)

    assert report.safe
    assert (report.unchecked[0].instances, report.compared.decisions) == (4, 2)


def test_the_archive_of_a_purge_can_be_checked(app: Mainspring, tmp_path: Path) -> None:
    archive = tmp_path / "archive.jsonl"

    async def purge(app: Mainspring) -> None:
        await app.purge(older_than=timedelta(0), archive=archive)

    running(app, purge, work=True)
    report = check_file(refunds("memory://"), archive)

    assert (report.instances, report.in_flight, report.events) == (2, 0, 8)
    assert report.safe

    with archive.open("ab") as file:
        file.write(
            b'{"workflow":"Refund","instance":"cut-1","version":1,"event":"Began","time":"2026-01-01T00:00:00Z"}\n'
        )
        file.write(b'{"workflow":"Refund","inst')
    (unchecked,) = check_file(refunds("memory://"), archive).unchecked
    assert unchecked.why == "its archived stream is cut short"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"line":"file","format":"mainspring.streams","version":1}\n', "is cut short"),
        ('{"line":"file","format":"mainspring.streams","version":2}\n', "this release reads mainspring.streams 1"),
        ('{"line":"file","format":"mainspring.streams","version":1,"payloads":false}\n', "without its messages"),
        ("what is this?\n", "line 1, is no line of an export"),
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "streams.jsonl"
    path.write_text(text)

    with pytest.raises(OperationError, match=problem):
        check_file(refunds("memory://"), path)


def test_a_failed_export_leaves_the_old_file_and_nothing_else(app: Mainspring, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "streams.jsonl"
    path.write_text("the old one")

    async def interrupted(app: Mainspring) -> None:
        def stop(_: int) -> None:
            raise KeyboardInterrupt

        await export(internals_of(app).engine.store, path, on_progress=stop)

    with pytest.raises(KeyboardInterrupt):
        running(app, interrupted)
    assert [(each.name, each.read_text()) for each in folder.iterdir()] == [("streams.jsonl", "the old one")]


def test_what_cannot_be_read_is_told_and_hides_nothing_else(
    app: Mainspring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.analysis.streams.EVENTS_PER_PAGE", 3)
    connection = apsw.Connection(str(tmp_path / "refunds.db"))
    # In the first page of one stream, and in a later one of another.
    connection.execute(
        "UPDATE events SET body = CAST('{}' AS BLOB) WHERE message_id = 'm-3' OR (version = 4 AND instance = 5)"
    )
    connection.close()
    path = tmp_path / "streams.jsonl"

    written = exported(app, path, redaction=WHOLE)

    assert (written.instances, written.unread) == (5, 2)
    assert dict(written.left_out) == {"Refund/waits-1": DAMAGED, "Refund/noted": DAMAGED}
    report = check_file(refunds("memory://"), path)
    assert [(each.why, each.example) for each in report.unchecked] == [(DAMAGED, "Refund/noted")]
    assert report.safe
    for format in ("xes", "ocel"):
        assert exported(app, tmp_path / "log", format=format).unread == 2
        (read_xes if format == "xes" else read_ocel)(tmp_path / "log")


def test_a_place_that_cannot_be_written_is_told(app: Mainspring, tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="cannot be written"):
        exported(app, tmp_path / "nowhere" / "streams.jsonl")


# ---- redaction


def test_fields_are_redacted_wherever_they_stand() -> None:
    redaction = Redaction(payloads=True, fields=["card", "Order.note"])

    def body(type: str, body: str) -> Any:
        outgoing = redaction.outgoing(EventRow(2, "Received", 0, type, 1, body.encode()))
        assert outgoing.redacted
        return json.loads(outgoing.body or b"")

    assert body("Claim", '{"card":"4111","note":"n"}') == {"card": MARKER, "note": "n"}
    assert body("Order", '{"card":{"number":4111},"note":"n"}') == {"card": MARKER, "note": MARKER}
    assert body("Batch", '{"all":[{"$type":"Order","note":"n"},{"card":1}]}') == {
        "all": [{"$type": "Order", "note": MARKER}, {"card": MARKER}]
    }


def test_a_field_is_redacted_though_its_name_is_written_with_escapes() -> None:
    row = EventRow(2, "Received", 0, "PlaceOrder", 1, b'{"c\\u0061rd":"4111"}')
    outgoing = Redaction(payloads=True, fields=["card"]).outgoing(row)
    assert (outgoing.body, outgoing.redacted) == (b'{"card":"[redacted]"}', True)
    other = EventRow(2, "Received", 0, "PlaceOrder", 1, b'{"n\\u0061me":"4111"}')
    assert not Redaction(payloads=True, fields=["card"]).outgoing(other).redacted


def test_messages_inside_of_others_are_redacted_too() -> None:
    redaction = Redaction(payloads=True, fields=["card"])
    parts = EventRow(
        3,
        "FannedOut",
        0,
        "mainspring.Parts",
        1,
        msgspec.json.encode(Parts((("Charge", 1, '{"card":"4111"}'),), 1, "D", "k")),
    )
    detail = Detail(compensate=Packed("Refund", 1, msgspec.Raw(b'{"card":"4111"}')), data={"card": "4111", "id": "o-1"})
    asked = EventRow(4, "Sent", 0, "Charge", 1, b'{"id":1}', encode_detail(detail))

    for row in (parts, asked):
        outgoing = redaction.outgoing(row)
        assert outgoing.redacted
        assert b"4111" not in (outgoing.body or b"") + (outgoing.detail or b"")
        assert MARKER.encode() in (outgoing.body or b"") + (outgoing.detail or b"")

    said = Detail(reason="Charge(card='4111') was refused", title="Is card: 4111 yours?")
    refused = redaction.outgoing(EventRow(5, "Suspended", 0, detail=encode_detail(said)))
    assert msgspec.json.decode(refused.detail or b"", type=Detail) == Detail(
        reason=MARKER, title=f"Is card: {MARKER} yours?"
    )

    left_out = Redaction().outgoing(asked)
    assert (left_out.body, left_out.detail) == (None, None)


@pytest.mark.parametrize("field", ["", ".card", "Order."])
def test_a_field_that_names_nothing_is_refused(field: str) -> None:
    with pytest.raises(SettingError):
        Redaction(payloads=True, fields=[field])


# ---- the standards


def test_an_xes_log_is_as_the_standard_asks(app: Mainspring, tmp_path: Path) -> None:
    path = tmp_path / "refunds.xes"
    exported(app, path, format="xes", redaction=WHOLE)

    log = read_xes(path)

    traces = {_value(trace, "concept:name"): trace for trace in log.iter("trace")}
    assert list(traces) == [f"Refund/{id}" for id in ("small-1", "small-2", "waits-1", "waits-2", "noted", "reviewed")]
    assert [
        (_value(event, "concept:name"), _value(event, "lifecycle:transition"), _value(event, "org:resource"))
        for event in traces["Refund/reviewed"].iter("event")
    ] == [
        ("Began", "start", None),
        ("Claim", "complete", None),
        ("Review", "schedule", None),
        ("Overdue", "schedule", None),
        ("Reviewed", "complete", "eve"),
        ("Overdue", "withdraw", None),
        ("Paid", "complete", None),
    ]
    claim = list(traces["Refund/reviewed"].iter("event"))[1]
    assert [(child.tag, child.get("value")) for child in claim if child.get("key", "").startswith("message.")] == [
        ("string", "reviewed"),
        ("int", "300"),
        ("string", "4111-card"),
    ]


def test_an_xes_log_says_nothing_of_messages_unless_asked(app: Mainspring, tmp_path: Path) -> None:
    path = tmp_path / "refunds.xes"
    exported(app, path, format="xes")

    read_xes(path)
    assert "message." not in path.read_text()


def test_the_check_of_xes_finds_what_is_wrong() -> None:
    log = ET.fromstring('<log xes.version="one"><trace><event/><string key="a b" value="x"/></trace></log>')  # noqa: S314

    assert list(xes_faults(log)) == [
        "a log without a version: log {'xes.version': 'one'}",
        "attributes of a trace come before its events",
        "a key 'a b'",
    ]


def test_an_ocel_log_is_as_the_standard_asks(app: Mainspring, tmp_path: Path) -> None:
    path = tmp_path / "refunds.json"
    exported(app, path, format="ocel", redaction=WHOLE)

    log = read_ocel(path)

    assert Counter(each.type for each in log.objects) == {"Refund": 6, "Person": 3}
    (reviewed,) = [each for each in log.events if each.id == "Refund/reviewed/5"]
    assert reviewed.type == "Received Reviewed"
    assert [(each.object_id, each.qualifier) for each in reviewed.relationships] == [
        ("Refund/reviewed", "of"),
        ("person:eve", "by"),
    ]
    (instance,) = [each for each in log.objects if each.id == "Refund/reviewed"]
    assert [(each.name, each.value) for each in instance.attributes] == [
        ("status", "completed"),
        ("state", "InReview"),
        ("state", "Closed"),
    ]
    declared = {each.name: {a.name: a.type for a in each.attributes} for each in log.event_types}
    assert declared["Received Claim"]["message.amount"] == "integer"


def test_a_task_is_no_instance_whatever_ids_are_like() -> None:
    file = io.BytesIO()
    writer = OcelWriter(file, Redaction())
    writer.begin(moment(0))
    for id in ("o-1", "o-1/2"):
        writer.instance(InstanceRow(1, "Orders", id, 2, "running", None, None, 1, b'{"correlation_id":"c"}', 0, 0))
        asked = EventRow(2, "Asked", 0, detail=encode_detail(Detail(key="approval")))
        writer.event(Ref("Orders", id), asked, Redaction().outgoing(asked))
    writer.end()
    writer.close()
    objects = {each["id"]: each["type"] for each in json.loads(file.getvalue())["objects"]}
    assert objects == {
        "Orders/o-1": "Orders",
        "Orders/o-1/2": "Orders",
        "task:Orders/o-1/2": "Task",
        "task:Orders/o-1/2/2": "Task",
    }


def test_an_instance_whose_context_is_damaged_hides_no_other(app: Mainspring, tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "refunds.db"))
    connection.execute("UPDATE instances SET context = x'00' WHERE key = 1")
    connection.close()
    written = exported(app, tmp_path / "log.json", format="ocel")
    assert (written.unread, written.left_out[0][1]) == (1, DAMAGED)
    objects = json.loads((tmp_path / "log.json").read_text())["objects"]
    others = [each["id"] for each in objects if each["type"] == "Refund"]
    assert others == [f"Refund/{id}" for id in ("noted", "reviewed", "small-2", "waits-1", "waits-2")]
    assert written.instances == len(others)


def test_keys_make_no_activities_of_their_own() -> None:
    activities = Activities()
    rows = [
        (EventRow(3, "Scheduled", 0), Outgoing("Overdue", None, None), Detail(key="c-1")),
        (EventRow(4, "Asked", 0), Outgoing(None, None, None), Detail(key="by ann", answers=("Approve", "Reject"))),
        (EventRow(6, "TaskClosed", 0), Outgoing(None, None, None), Detail(key="by ann")),
        (EventRow(7, "ScheduleCancelled", 0), Outgoing(None, None, None), Detail(key="c-1")),
        (EventRow(8, "ScheduleCancelled", 0), Outgoing(None, None, None), Detail(key="unknown")),
        (EventRow(9, "Failed", 0), Outgoing(None, None, None), Detail()),
    ]

    names = [activities.name(*row) for row in rows]

    assert names == ["Overdue", "Approve or Reject", "Approve or Reject", "Overdue", "ScheduleCancelled", "Failed"]


def test_filters_choose_what_is_written(app: Mainspring, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl"

    assert exported(app, path, wheres=[InstanceFilter(id_prefix="small-")]) == Exported(2, 8)

    written = [line for line in lines(path) if line["line"] == "instance"]
    assert [(line["instance"], line["status"]) for line in written] == [
        ("small-1", "completed"),
        ("small-2", "completed"),
    ]


def test_what_any_of_several_filters_finds_is_written(app: Mainspring, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl"
    wheres = [InstanceFilter(status="running"), InstanceFilter(status="suspended"), InstanceFilter(id_prefix="small-")]

    exported(app, path, wheres=wheres)

    written = sorted(line["instance"] for line in lines(path) if line["line"] == "instance")
    assert written == ["noted", "small-1", "small-2", "waits-1", "waits-2"]


def _value(element: ET.Element, key: str) -> str | None:
    return next((child.get("value") for child in element if child.get("key") == key), None)

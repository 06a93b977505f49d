"""A redacted field is on no route under any of its names, nor where nobody knows of what type something is."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from mainspring import Ask, Decisions, Event, Mainspring, Received, Send, Workflow
from mainspring.analysis.export.export import export
from mainspring.analysis.export.redaction import Redaction
from mainspring.app.internals import internals_of
from mainspring.app.undelivered import keep_undelivered
from mainspring.errors import SettingError
from mainspring.port.records import InstanceFilter
from mainspring.web.api import api
from tests.edges.web.support import asked
from tests.proof.secrets.looking import in_bytes
from tests.proof.secrets.test_shown_bytes import heard, paths
from tests.proof.secrets.vault import secret
from tests.support.running import run
from tests.support.waiting import until


class Keep(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    card_number: str
    pin: str = msgspec.field(name="p")


class Place(NamedTuple):
    shelf: str
    door_code: str


class Holder(BaseModel):
    model_config = ConfigDict(frozen=True)

    phone_number: str = Field(validation_alias=AliasChoices("tel", "phone"), serialization_alias="tel")


class Lend(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    card_number: str = Field(alias="cardNo")
    holder: Holder


class Row(msgspec.Struct, frozen=True, array_like=True):
    """What is written as an array has no names."""

    id: str
    card_number: str


@dataclass(frozen=True)
class Shelve:
    id: str
    place: Place


@dataclass(frozen=True)
class Note:
    """May hold anything."""

    id: str
    said: dict[str, Any]


@dataclass(frozen=True)
class Checked:
    id: str
    card_number: str = ""


@dataclass(frozen=True)
class Empty: ...


@dataclass(frozen=True)
class Full:
    """Holds a message, whose type is not written beside it."""

    taken: Keep
    again: tuple[Keep, ...] = ()


ShelfInput = Keep | Lend | Row | Shelve | Note | Checked


@dataclass(frozen=True)
class Copy:
    id: str
    row: Row


class Shelf(Workflow[ShelfInput, Empty | Full, Copy]):
    initial_state = Empty()
    begins = (Keep, Lend, Row, Shelve, Note)

    def route(self, message: ShelfInput) -> str:
        return message.id

    def evolve(self, state: Empty | Full, event: Event[ShelfInput, Copy]) -> Empty | Full:
        match event:
            case Received(Keep() as taken):
                return Full(taken, (taken,))
            case _:
                return state

    def attributes(self, state: Empty | Full) -> dict[str, Any]:
        return {} if isinstance(state, Empty) else {"card_number": state.taken.card_number}

    def decide(self, message: ShelfInput, state: Empty | Full) -> Decisions[ShelfInput, Copy]:
        match message:
            case Keep():
                data = {"card_number": message.card_number, "pin": message.pin}
                return [Ask("Look at it", answer=Checked, role="keeper", key="check", data=data)]
            case Row():
                return [Send(Copy(message.id, message))]
            case _:
                return []


IN_CODE = ["card_number", "pin", "door_code", "phone_number"]
STORED = ["cardNumber", "cardNo", "card_number", "p", "door_code", "phone"]
SCOPED = ["Keep.card_number", "Keep.pin", "Lend.card_number", "Lend.tel", "Row.card_number", "Shelve.door_code"]
WAYS = ["renamed", "named", "aliased", "chosen", "positional", "array", "noted", "hooked", "sent"]


def made(folder: Path) -> Mainspring:
    app = Mainspring(f"sqlite:///{folder / 'shelf.db'}")
    app.add(Shelf())

    @app.handler
    async def copy(_: Copy) -> None: ...

    return app


async def go(app: Mainspring) -> None:
    await app.send(Keep("kept", secret("renamed"), secret("named")))
    lent = {"id": "lent", "cardNo": secret("aliased"), "holder": {"tel": secret("chosen")}}
    await app.send(Lend.model_validate(lent))
    await app.send(Shelve("shelved", Place("a", secret("positional"))))
    await app.send(Row("row", secret("array")))
    await app.send(Note("noted", {"cardNumber": secret("noted"), "more": [{"card_number": secret("noted")}]}))
    await until(lambda: _done(app))
    for type, name in (("unknown", "hooked"), ("Checked", "sent")):
        body = json.dumps({"card_number": secret(name), "data": {"p": secret(name)}}).encode()
        headers = {"ce-pin": secret(name)}
        await keep_undelivered(
            internals_of(app).engine, name, id=name, body=body, headers=headers, reason="it cannot be read", type=type
        )


async def _done(app: Mainspring) -> bool:
    rows = await internals_of(app).engine.store.instances(InstanceFilter(workflow="Shelf"), 10)
    return len(rows) == 5 and bool(await app.tasks.list(role="keeper"))


async def told(client: httpx.AsyncClient, shown: Any, app: Mainspring) -> dict[str, set[str]]:
    """Return every secret that somebody is told who looks at everything, by where."""
    rows = await internals_of(app).engine.store.instances(InstanceFilter(), 1_000)
    of_all, of_one = paths(shown, rows, [letter.id for letter in await app.dead_letters()])
    found: dict[str, set[str]] = {}
    for path in [*of_all, *of_one, "/api/tasks/Shelf/kept/3"]:
        if marks := in_bytes((await client.get(path)).content):
            found[path] = marks
    # All at once: each of them may have to wait for the next look.
    for what, content in await asyncio.gather(*(heard(shown.state.live, row) for row in rows)):
        if marks := in_bytes(content):
            found[what] = marks
    return found


@pytest.mark.parametrize("redact", [IN_CODE, STORED, SCOPED], ids=["in code", "stored", "scoped"])
def test_a_field_is_hidden_under_all_its_names(redact: list[str], tmp_path: Path) -> None:
    async def main() -> None:
        async with made(tmp_path) as app:
            await go(app)
            shown = api(app, start=False, redact=redact)
            async with asked(shown) as client:
                assert await told(client, shown, app) == {}
            redaction = Redaction(payloads=True, fields=redact)
            redaction.check(internals_of(app).registry)
            for format in ("jsonl", "xes", "ocel"):
                file = tmp_path / f"export.{format}"
                await export(internals_of(app).engine.store, file, format=format, redaction=redaction)
                assert in_bytes(file.read_bytes()) == set()

    run(main)


def test_all_of_it_is_shown_where_nothing_is_redacted(tmp_path: Path) -> None:
    async def main() -> None:
        async with made(tmp_path) as app:
            await go(app)
            shown = api(app, start=False)
            async with asked(shown) as client:
                found = await told(client, shown, app)
                assert set().union(*found.values()) == {secret(way) for way in WAYS}
                assert len(found) > 20

    run(main)


def test_what_is_not_named_is_shown_still(tmp_path: Path) -> None:
    async def main() -> None:
        async with made(tmp_path) as app:
            await go(app)
            async with asked(api(app, start=False, redact=["Lend.card_number", "Shelve.shelf"])) as client:

                async def shown(id: str) -> Any:
                    return (await client.get(f"/api/streams/Shelf/{id}")).json()["items"][1]["message"]

                assert await shown("kept") == {"id": "kept", "cardNumber": secret("renamed"), "p": secret("named")}
                assert await shown("lent") == {
                    "id": "lent",
                    "cardNo": "[redacted]",
                    "holder": {"tel": secret("chosen")},
                }
                assert await shown("shelved") == {"id": "shelved", "place": "[redacted]"}

    run(main)


def test_a_body_that_is_hidden_whole_is_given_back_as_it_is_stored(tmp_path: Path) -> None:
    app = made(tmp_path)
    redaction = Redaction(payloads=True, fields=["Row.card_number"])
    redaction.check(internals_of(app).registry)
    assert redaction.body("Row", b'["row","4111"]') == b'"[redacted]"'
    assert redaction.restored("Row", b'"[redacted]"', b'["row","4111"]') == b'["row","4111"]'


def test_a_workflow_that_is_added_later_is_known_too(tmp_path: Path) -> None:
    app = Mainspring("memory://")
    redaction = Redaction(payloads=True, fields=["card_number"])
    redaction.check(internals_of(app).registry)
    app.add(Shelf())
    assert b"4111" not in redaction.body("Keep", b'{"id":"k","cardNumber":"4111","p":""}')


def test_a_type_that_the_app_lost_is_hidden_by_the_fields_of_all(tmp_path: Path) -> None:
    redaction = Redaction(payloads=True, fields=["Keep.card_number"])
    redaction.check(internals_of(made(tmp_path)).registry)
    assert redaction.body("Forgotten", b'{"cardNumber":"4111","id":"k"}') == b'{"cardNumber":"[redacted]","id":"k"}'


@pytest.mark.parametrize("name", ["Place.door_code", "Nothing.card_number"])
def test_a_type_that_no_message_or_state_has_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="Name a type of message or state"):
        api(made(tmp_path), redact=[name])

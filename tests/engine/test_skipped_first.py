"""A first input that failed and was skipped: no instance is there for it, and nothing of it is lost or taken again."""

from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import Decisions, Event, Mainspring, Workflow
from mainspring.errors import DuplicateIdError, NoSuchInstanceError
from tests.support.apps import MakeApp
from tests.support.running import run


@dataclass(frozen=True)
class Open:
    id: str
    fails: bool = False


@dataclass(frozen=True)
class Note:
    id: str


@dataclass(frozen=True)
class Ready:
    pass


class Folder(Workflow[Open | Note, Ready, Note]):
    begins = Open
    initial_state = Ready()

    def route(self, message: Open | Note) -> str:
        return message.id

    def evolve(self, state: Ready, event: Event[Any, Any]) -> Ready | None:
        return None

    def decide(self, message: Open | Note, state: Ready) -> Decisions[Any, Note]:
        if isinstance(message, Open) and message.fails:
            raise ValueError("it cannot be opened")
        return []


def folders(app: Mainspring) -> Mainspring:
    app.add(Folder())
    return app


async def skipped(app: Mainspring) -> None:
    assert (await app.send(Open("f-1", fails=True), id="m-1")).status == "suspended"
    await app.instance(Folder, "f-1").skip(actor="ann")


def test_who_needs_an_instance_is_told_that_it_never_began(make_app: MakeApp) -> None:
    async def main() -> None:
        async with folders(make_app()) as app:
            await skipped(app)
            with pytest.raises(NoSuchInstanceError):
                await app.send(Note("f-1"), must_exist=True)
            instance = app.instance(Folder, "f-1")
            row, (line,) = await instance.row(), await instance.log()
            assert (row.position, row.error) == (0, "it has not begun: Open m-1 was skipped by ann")
            assert (line.position, line.what, line.about) == (0, "Skipped", row.error)

    run(main)


def test_one_whose_first_input_waits_counts_as_there(make_app: MakeApp) -> None:
    async def main() -> None:
        async with folders(make_app()) as app:
            await app.send(Open("f-1", fails=True))
            assert (await app.send(Note("f-1"), must_exist=True)).status in ("suspended", "accepted")

    run(main)


def test_what_was_skipped_is_a_dead_letter_and_known_when_it_comes_again(make_app: MakeApp) -> None:
    async def main() -> None:
        async with folders(make_app()) as app:
            await skipped(app)
            assert (await app.send(Open("f-1", fails=True), id="m-1")).status == "duplicate"
            with pytest.raises(DuplicateIdError):
                await app.send(Open("f-1"), id="m-1")
            (letter,) = await app.dead_letters()
            assert (letter.message_id, letter.reason) == ("m-1", "skipped by ann")
        async with folders(make_app()) as app:
            assert (await app.send(Open("f-1", fails=True), id="m-1")).status == "duplicate"

    run(main)


def test_another_message_begins_it_and_the_letter_can_be_corrected(make_app: MakeApp) -> None:
    async def main() -> None:
        async with folders(make_app()) as app:
            await skipped(app)
            assert (await app.send(Open("f-1"), id="m-2")).status == "stepped"
            row = await app.instance(Folder, "f-1").row()
            assert (row.status, row.position, row.error) == ("running", 2, None)
            await app.send(Open("f-2", fails=True), id="m-3")
            await app.instance(Folder, "f-2").skip()
            letter = next(each for each in await app.dead_letters() if each.instance == "Folder/f-2")
            await app.retry_dead_letter(letter.id, Open("f-2"))
            assert (await app.instance(Folder, "f-2").row()).position == 2

    run(main)

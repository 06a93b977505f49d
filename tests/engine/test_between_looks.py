"""What is looked at twice may have gone on in between: the answer is as of one moment all the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.states import state_at
from mainspring.engine.runtime import SystemClock
from mainspring.port.records import EventRow, InputRow, Loaded, Ref
from mainspring.stores.memory import MemoryStore
from tests.engine.jobs import Done, Job, Start, Work, Working
from tests.support.running import run
from tests.support.waiting import until


class BetweenLooks(MemoryStore):
    """Lets something happen behind the next look at it."""

    then: Callable[[], Awaitable[object]] | None = None

    async def _happen(self) -> None:
        then, self.then = self.then, None
        if then is not None:
            await then()

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        found = await super().load(refs, most)
        await self._happen()
        return found

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        found = await super().stream(ref, after, limit)
        await self._happen()
        return found

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        found = await super().inbox(ref, limit)
        await self._happen()
        return found


class QueuedJob(Job):
    mode = "inbox"


async def worked(command: Work) -> Done:
    return Done(command.id, command.part)


def app_on(store: MemoryStore, workflow: Job) -> Mainspring:
    app = Mainspring("memory://", store=store)
    app.add(workflow)
    app.handler(worked)
    return app


def test_a_stream_that_begins_between_two_looks_is_not_told_as_an_empty_one() -> None:
    async def main() -> None:
        store = BetweenLooks(SystemClock())
        app = app_on(store, Job())
        await app.start(work=False)
        store.then = lambda: app.send(Start("j-1"))
        assert len(await app.instance(Job, "j-1").stream()) > 0
        await app.stop()

    run(main)


def test_behind_the_end_of_a_stream_there_is_nothing() -> None:
    async def main() -> None:
        app = app_on(MemoryStore(SystemClock()), Job())
        await app.start(work=False)
        begun = await app.send(Start("j-1"))
        assert await begun.stream(after=len(await begun.stream())) == []
        await app.stop()

    run(main)


def test_an_instance_whose_first_input_is_taken_between_two_looks_is_there() -> None:
    async def main() -> None:
        store = BetweenLooks(SystemClock())
        app, worker = app_on(store, QueuedJob()), app_on(store, QueuedJob())
        await app.start(work=False)
        receipt = await app.send(Start("j-1"))
        assert receipt.status == "accepted"

        async def take() -> None:
            await worker.start()
            await until(lambda: _begun(store))

        store.then = take
        # As of before or behind it, and not that there is none.
        assert (await receipt.standing()).split(" ")[0] in ("is", "has")
        await worker.stop()
        await app.stop()

    run(main)


async def _begun(store: MemoryStore) -> bool:
    return (await store.load([Ref("QueuedJob", "j-1")], 0))[0] is not None


class Noted(Job):
    snapshot_every = 1


def test_a_state_that_is_folded_anew_is_that_of_the_version_it_is_shown_with(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        store = BetweenLooks(SystemClock())
        app = app_on(store, Noted())
        await app.start(work=False)
        await app.send(Start("j-1", times=3))
        monkeypatch.setattr(internals_of(app).registry.workflows["Noted"], "fingerprint", "that of other code")
        [loaded] = await store.load([Ref("Noted", "j-1")])
        assert loaded is not None
        assert loaded.snapshot is not None
        await app.send(Start("j-1", times=5))
        shown = await state_at(app, loaded, None)
        assert (shown.position, shown.value) == (loaded.row.version, Working(3))
        await app.stop()

    run(main)

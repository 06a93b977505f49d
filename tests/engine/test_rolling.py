"""Workers of two releases on one database: the older ones leave alone what only the newer ones know."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import FeedEntry, Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.claiming import claimer
from mainspring.engine.outputs import settlements
from mainspring.port.records import InputRow, OutputClaim, Ref, Unit
from tests.engine.errands import KINDS, STRANGE, Run, Strange, errands
from tests.engine.releases import CHANGES, Change, begin, release
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

TRIPS = 6


async def all_ended(app: Mainspring, count: int = TRIPS) -> bool:
    return (await app.stats()).instances.get("completed", 0) == count


async def nothing_is_wrong(app: Mainspring) -> None:
    stats = await app.stats()
    assert "suspended" not in stats.instances, [row.error for row in await app.instances(status="suspended")]
    assert stats.dead_letters == 0, [(letter.reason, letter.error) for letter in await app.dead_letters()]


async def look_twice(app: Mainspring) -> None:
    """Let the claims of an app look at all there is, and give back what they do not want."""
    for _ in range(3):
        rounds = internals_of(app).engine.claimer.rounds
        internals_of(app).engine.wakeups.due_at(0)
        await until(
            lambda rounds=rounds: (
                internals_of(app).engine.claimer.rounds > rounds and internals_of(app).engine.claimer.idle
            )
        )
        await until(lambda: internals_of(app).engine.committer.idle)


@pytest.mark.parametrize("change", CHANGES)
def test_a_worker_of_the_release_before_leaves_alone_what_it_cannot_read(
    change: Change, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the old worker gives back, the new one finds by looking again.
    monkeypatch.setattr("mainspring.engine.claiming.claimer.POLL_SECONDS", 0.05)

    async def main() -> None:
        held = asyncio.Event()

        async def hold(id: str) -> None:
            if id.startswith("held"):
                await held.wait()

        async with release(make_app(), change, hold) as new:
            await new.send_many([begin(change, f"{'held' if n % 2 else 'free'}-{n}") for n in range(TRIPS)])
            async with release(make_app(), None) as old:
                await until(lambda: all_ended(new, TRIPS // 2))
                await nothing_is_wrong(old)
                held.set()
                await until(lambda: all_ended(new))
            await nothing_is_wrong(new)

    run(main)


@pytest.mark.parametrize(("type", "version"), [("Ridden", 1), ("Walked", 2)], ids=["a new type", "a new version"])
def test_an_input_that_cannot_be_read_is_claimed_once_and_left_from_then_on(
    type: str, version: int, make_app: MakeApp
) -> None:
    async def main() -> None:
        async with release(make_app(), None) as old:
            await accept(old, "t-1", type, version)
            await accept(old, "t-1", "Walked", 1)
            await look_twice(old)
            taken = internals_of(old).engine.claimer.taken
            assert internals_of(old).engine.claimer.strangers.leaves().types == ((type, version),)
            await look_twice(old)
            assert internals_of(old).engine.claimer.taken == taken
            await accept(old, "t-2", "Walked", 1)
            await look_twice(old)
            assert internals_of(old).engine.claimer.taken == taken + 1
            assert [row.type for row in await internals_of(old).engine.store.inbox(Ref("Trip", "t-1"), 9)] == [
                type,
                "Walked",
            ]

    run(main)


async def accept(app: Mainspring, id: str, type: str, version: int) -> None:
    """Let an input wait in an inbox, as another process would."""
    store, body = internals_of(app).engine.store, f'{{"id": "{id}", "round": 1}}'.encode()
    names = ("Trip", id, f"{type}-{version}", "command", type)
    row = InputRow(*names, version, body, store.now_us(), b'{"correlation_id":"c"}')
    await store.commit(0, [Unit("Trip", id, accepts=(row,))])


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_newer_release_left_behind_waits_for_it(change: Change, make_app: MakeApp) -> None:
    async def main() -> None:
        async with release(make_app(), change) as new:
            await new.send_many([begin(change, f"t-{n}") for n in range(TRIPS)])
        async with release(make_app(), None) as old:
            await look_twice(old)
            await nothing_is_wrong(old)
        async with release(make_app(), change) as new:
            await until(lambda: all_ended(new))
            await nothing_is_wrong(new)

    run(main)


@pytest.mark.parametrize("way", STRANGE)
def test_answers_of_unknown_types_are_claimed_and_given_back_while_others_pass(
    way: Strange, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Their destinations do not show their types: the old worker takes them, and harms neither them nor others."""
    monkeypatch.setattr(settlements, "OUTPUT_LEFT_SECONDS", 0.05)
    monkeypatch.setattr(claimer, "POLL_SECONDS", 0.05)
    caplog.set_level("INFO")

    async def main() -> None:
        async with errands(make_app(), newer=True) as dying:
            await leave_behind(dying, way)
        async with errands(make_app()) as old:
            await old.send_many([Run(f"plain-{n}", way) for n in range(TRIPS)])
            await until(lambda: ended(old, "plain"))
            await until(lambda: UNREADABLE[way] in caplog.text)
            await nothing_is_wrong(old)
            async with errands(make_app(), newer=True) as new:
                await new.send_many([Run(f"late-{n}", way, newer=True) for n in range(TRIPS)])
                for kind in ("strange", "late"):
                    await until(lambda kind=kind: ended(new, kind))
                await nothing_is_wrong(new)

    run(main)


UNREADABLE: dict[Strange, str] = {
    "reply": "cannot read ToldMore",
    "end": "cannot read MadeMore",
    "part": "'LargerPiece': no type of that name is registered",
}


async def ended(app: Mainspring, kind: str) -> bool:
    rows = await app.instances(workflow="Errand", status="completed")
    return sum(row.id.startswith(kind) for row in rows) == TRIPS


async def leave_behind(app: Mainspring, way: Strange) -> None:
    """Let errands come as far as their answers, and have them in hand until the app stops."""
    outputs: Any = internals_of(app).engine.dispatcher
    begin, held = outputs.begin, set[str]()

    def hold(claim: OutputClaim, message: Any) -> None:
        if claim.kind == KINDS[way] and (claim.workflow == "Errand") == (way == "part"):
            held.add(claim.instance)
        else:
            begin(claim, message)

    outputs.begin = hold
    await app.send_many([Run(f"strange-{n}", way, newer=True) for n in range(TRIPS)])
    await until(lambda: len(held) == TRIPS)


@pytest.mark.parametrize("change", ["input", "message version"])
def test_a_read_model_goes_on_in_the_newer_release_and_waits_in_the_one_before(
    change: Change, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mainspring.engine.projections.projector.FIRST_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr("mainspring.engine.engine.HEARTBEAT_SECONDS", 0.05)

    async def main() -> None:
        async with release(make_app(), change) as new:
            await new.send(begin(change, "t-1"))
            await until(lambda: all_ended(new, 1))
        async with counting(release(make_app(), None)) as old:
            trips = old.projections("trips")
            await until(lambda: is_left(old))
            status = await trips.status()
            assert not status.stopped
            assert [checkpoint.error for checkpoint in await internals_of(old).engine.store.checkpoints("trips")] == [
                None
            ]
            async with counting(release(make_app(), change)) as new:
                await new.projections("trips").caught_up()
                await until(lambda: is_left(old, left=False))
                await new.send(begin(change, "t-2"))
                await until(lambda: all_ended(new, 2))
                await new.projections("trips").caught_up()
                documents = dict(await new.projections("trips").list())
                for id in ("t-1", "t-2"):
                    assert documents[id] == Seen(len(await new.instance_at(f"Trip/{id}").stream()))
                assert not (await trips.status()).stopped

    run(main)
    assert "projection trips is left to workers of a newer release" in caplog.text
    assert "projection trips is stopped" not in caplog.text


@dataclass(frozen=True)
class Seen:
    events: int = 0


def counting(app: Mainspring) -> Mainspring:
    """Return the app with a read model that counts the events of each trip."""

    @app.projections.add(key=lambda entry: entry.instance)
    def trips(document: Seen | None, entry: FeedEntry) -> Seen:  # pyright: ignore[reportUnusedFunction]
        return Seen((document or Seen()).events + 1)

    return app


async def is_left(app: Mainspring, *, left: bool = True) -> bool:
    return ((await app.projections("trips").status()).left is not None) == left

"""Live changes: told as they happen, from where somebody left off, and with one look for all."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import json

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.errors import StoreBusyError
from mainspring.port.records import Ref
from mainspring.port.store import Store
from mainspring.testing.samples import Count
from mainspring.web import live as module
from mainspring.web.live import HEARTBEAT, Live
from mainspring.web.problems import Problem, Refusal
from mainspring.web.server import Server, address_of, bound
from mainspring.web.slow import Slow
from mainspring.web.studio import studio
from tests.edges.web.support import counters
from tests.support.waiting import until

SOON_SECONDS = 60


def read(text: bytes) -> tuple[str, Any, str | None]:
    fields = dict(line.split(": ", 1) for line in text.decode().strip().split("\n"))
    return fields["event"], json.decode(fields["data"]), fields.get("id")


async def told(stream: AsyncIterator[bytes], count: int) -> list[tuple[str, Any, str | None]]:
    """Return the next events, heartbeats and settings left aside."""
    found: list[tuple[str, Any, str | None]] = []
    async with asyncio.timeout(SOON_SECONDS):
        while len(found) < count:
            text = await anext(stream)
            if text.startswith((b"event", b"id")):
                found.append(read(text))
    return found


def test_an_instance_is_told_as_it_moves_and_a_listener_goes_on_where_it_was(tmp_path: Path) -> None:
    async def use() -> None:
        async with counters(tmp_path) as app:
            await app.send(Count("c-1"))
            live = Live(app, look_seconds=0.01)
            first = live.listen(Ref("Counter", "c-1"))
            [(name, now, _)] = await told(first, 1)
            assert (name, now["position"]) == ("instance", 2)
            await app.send(Count("c-1"))
            moved, events = await told(first, 2)
            assert moved[1]["position"] == 3
            assert [(event["position"], event["event"]) for event in events[1]] == [(3, "Received")]
            assert events[2] == "3"
            await first.aclose()  # pyright: ignore[reportAttributeAccessIssue]  it is a generator
            await app.send(Count("c-1"))
            again = live.listen(Ref("Counter", "c-1"), after=3)
            _, missed = await told(again, 2)
            assert [event["position"] for event in missed[1]] == [4, 5]
            assert live.listeners == 1

    asyncio.run(use())


def test_all_who_listen_are_told_by_one_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    async def use() -> None:
        async with counters(tmp_path) as app:
            await app.send(Count("c-1"))
            live = Live(app, look_seconds=3_600)  # there is no second look, however long the first takes
            stats, load = app.stats, internals_of(app).engine.store.load

            async def counted_stats() -> Any:
                looks.append("stats")
                return await stats()

            async def counted_load(refs: Any, most: Any = None) -> Any:
                looks.append("load")
                return await load(refs, most)

            monkeypatch.setattr(app, "stats", counted_stats)
            monkeypatch.setattr(internals_of(app).engine.store, "load", counted_load)
            streams = [live.listen() for _ in range(20)] + [live.listen(Ref("Counter", "c-1")) for _ in range(20)]
            first = await asyncio.gather(*(told(stream, 1) for stream in streams))
            assert {events[0][0] for events in first} == {"stats", "instance"}
            assert sorted(looks) == ["load", "stats"]
            live.close()

    asyncio.run(use())


def test_while_counting_takes_long_the_last_figures_are_told_and_another_connection_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_SECONDS", -1.0)  # whatever it takes is long
    counts: list[Store] = []
    may_count = asyncio.Event()

    async def use() -> None:
        async with counters(tmp_path) as app:
            slow = Slow(app)

            async def beside(ask: Any) -> Any:
                await may_count.wait()

                async def seen(store: Store) -> Any:
                    counts.append(store)
                    return await ask(store)

                return await slow.beside(seen)

            live = Live(app, look_seconds=0.0, beside=beside)
            may_count.set()
            assert (await live.stats()).instances == {}  # the first has to wait
            may_count.clear()
            await app.send(Count("c-1"))
            assert [(await live.stats()).instances for _ in range(3)] == [{}] * 3
            may_count.set()
            await until(lambda: counted(live))
            assert internals_of(app).engine.store not in counts
            # What fails in the background is not covered by figures of before.
            monkeypatch.setattr(slow, "_read", _fails)
            with pytest.raises(StoreBusyError):
                await until(lambda: never(live))

    asyncio.run(use())


async def _fails(_: Any) -> None:
    raise StoreBusyError("sqlite:///web.db", 5.0)


async def counted(live: Live) -> bool:
    return bool((await live.stats()).instances)


async def never(live: Live) -> bool:
    """Ask, and be told in vain: only an error ends it."""
    await live.stats()
    return False


def test_nobody_is_told_twice_of_what_has_not_changed_but_that_there_is_nothing_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.05)

    async def use() -> None:
        async with counters(tmp_path) as app:
            live = Live(app, look_seconds=0.01)
            stream = live.listen()
            assert (await told(stream, 1))[0][0] == "stats"
            async with asyncio.timeout(SOON_SECONDS):
                assert [await anext(stream) for _ in range(3)] == [HEARTBEAT] * 3
            live.close()
            assert [text async for text in stream] == []
            assert live.listeners == 0

    asyncio.run(use())


def test_who_listens_too_slowly_is_let_go_and_there_is_room_for_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUEUED", 2)
    monkeypatch.setattr(module, "STREAMS", 1)
    texts: asyncio.Queue[bytes] = asyncio.Queue()
    tell = module.Listener.tell

    def noted(self: module.Listener, text: bytes) -> None:
        tell(self, text)
        texts.put_nowait(text)

    monkeypatch.setattr(module.Listener, "tell", noted)

    async def use() -> None:
        async with counters(tmp_path) as app, asyncio.timeout(SOON_SECONDS):
            await app.send(Count("c-1"))
            live = Live(app, look_seconds=0.01)
            stream = live.listen(Ref("Counter", "c-1"))
            await told(stream, 1)
            with pytest.raises(Refusal) as refused:
                await anext(live.listen())
            assert refused.value.problem.status == 503
            await texts.get()
            moves: list[list[bytes]] = []
            for _ in range(2):
                await app.send(Count("c-1"))
                moves.append([await texts.get(), await texts.get()])
            # It hears of the first move, and not of the second.
            assert [text async for text in stream] == moves[0]

    asyncio.run(use())


def test_a_database_that_is_away_ends_the_streams(tmp_path: Path) -> None:
    async def use() -> None:
        app = counters(tmp_path)
        await app.start()
        live = Live(app, look_seconds=0.01)
        stream = live.listen()
        await told(stream, 1)
        await app.stop()
        async with asyncio.timeout(SOON_SECONDS):
            async for text in stream:
                assert b'"workers":0' in text  # of a look in the middle of the stop

    asyncio.run(use())


def test_counting_that_takes_too_long_ends_the_streams(tmp_path: Path) -> None:
    async def too_long(_: Any) -> Any:
        raise Refusal(Problem(504, "not in time", "It takes longer than 30 s.", "AnalysisTimeout"))

    async def use() -> None:
        async with counters(tmp_path) as app, asyncio.timeout(SOON_SECONDS):
            live = Live(app, look_seconds=0.01, beside=too_long)
            assert [text async for text in live.listen() if not text.startswith(b"retry")] == []

    asyncio.run(use())


def test_a_listener_that_is_far_behind_is_told_of_all_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVENTS_AT_ONCE", 2)

    async def use() -> None:
        async with counters(tmp_path) as app:
            for _ in range(4):
                await app.send(Count("c-1"))
            stream = Live(app, look_seconds=0.01).listen(Ref("Counter", "c-1"), after=0)
            pieces = [data for name, data, _ in await told(stream, 6) if name == "events"]
            assert [[event["position"] for event in piece] for piece in pieces] == [[1, 2], [3, 4], [5]]

    asyncio.run(use())


def test_events_that_are_not_there_any_more_are_not_looked_for_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.05)

    async def none(*_: Any) -> list[Any]:
        return []

    async def use() -> None:
        async with counters(tmp_path) as app, asyncio.timeout(SOON_SECONDS):
            await app.send(Count("c-1"))
            monkeypatch.setattr(internals_of(app).engine.store, "stream", none)
            live = Live(app, look_seconds=0.01)
            stream = live.listen(Ref("Counter", "c-1"), after=1)
            assert (await told(stream, 1))[0][0] == "instance"
            assert await anext(stream) == HEARTBEAT
            live.close()

    asyncio.run(use())


def test_over_a_socket_a_stream_ends_when_the_server_stops_and_when_the_client_goes(tmp_path: Path) -> None:
    async def use() -> None:
        app: Mainspring = counters(tmp_path)
        made = studio(app, start=False)
        server, ready = Server(made), asyncio.Event()
        with bound("127.0.0.1", 0) as socket:
            async with app, httpx.AsyncClient(base_url=address_of(socket), timeout=SOON_SECONDS) as client:
                serving = asyncio.create_task(server.run_on(socket, ready))
                await asyncio.wait_for(ready.wait(), SOON_SECONDS)
                async with client.stream("GET", "/api/live") as answer:
                    assert answer.headers["content-type"].startswith("text/event-stream")
                    async for line in answer.aiter_lines():
                        if line.startswith("data"):
                            break
                await until(lambda: not made.state.live.listeners)
                async with client.stream("GET", "/api/live") as answer:
                    lines = answer.aiter_lines()
                    await anext(lines)
                    server.stop()
                    async with asyncio.timeout(SOON_SECONDS):
                        assert [line async for line in lines if line.startswith("event")] in ([], ["event: stats"])
                await asyncio.wait_for(serving, SOON_SECONDS)

    asyncio.run(use())

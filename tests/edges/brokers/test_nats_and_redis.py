"""NATS's and Redis's adapters: what is their own beside the contract."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from nats.aio.client import Client
from nats.js.api import ConsumerConfig
from redis.asyncio import Redis
from yarl import URL

from mainspring.brokers.nats import NatsBroker, consumer_of
from mainspring.brokers.port import Broker, Delivery, Outgoing, Subscription
from mainspring.brokers.redis import RedisBroker
from mainspring.errors import BrokerError, DoNotRetryError, SettingError
from tests.edges.brokers.cable import Cable
from tests.edges.brokers.servers import nats_server, nats_url, redis_url, valkey_server
from tests.support.waiting import PATIENCE_SECONDS, until

GROUP = "tests"
PREFETCH = 50
NUMBERED = 200
# So large that some are still on their way when the first has come.
PADDED_BYTES = 40_000
# Half of it is how long a busy machine may let nobody run: whoever renews later has lost its turn.
TAKEOVER_SECONDS = 60.0
# Where the end of a holder is waited for: it must come soon, and one that only seems dead subscribes again.
MORTAL_SECONDS = 1.0
# Longer than it takes to connect again: what was on its way would come behind what is new.
LONGER_SECONDS = 1.5
STREAMS = {"OWN": ["own.>"]}

log = logging.getLogger(__name__)


def own_address() -> str:
    return f"own.{uuid4().hex[:12]}"


def broker_at(kind: str, url: str, takeover_seconds: float = TAKEOVER_SECONDS) -> Broker:
    if kind == "nats":
        return NatsBroker(url, streams=STREAMS, takeover_seconds=takeover_seconds)
    return RedisBroker(url, takeover_seconds=takeover_seconds)


@asynccontextmanager
async def opened(broker: Broker) -> AsyncGenerator[Broker]:
    await broker.open()
    try:
        yield broker
    finally:
        await broker.close()


@pytest.mark.parametrize("kind", ["nats", "redis"])
def test_order_is_kept_though_the_line_is_cut_while_messages_are_on_their_way(kind: str) -> None:
    async def main() -> list[int]:
        address, seen = own_address(), list[int]()
        url = URL(nats_url() if kind == "nats" else redis_url())
        async with opened(broker_at(kind, str(url))) as direct, Cable(url.host or "", url.port or 0).laid() as cable:
            for begin in range(0, NUMBERED, PREFETCH):
                numbers = range(begin, begin + PREFETCH)
                padded = [Outgoing(address, f"{address} {n}", str(n).encode().ljust(PADDED_BYTES)) for n in numbers]
                assert await direct.publish(padded) == [None] * PREFETCH
            async with opened(broker_at(kind, f"{url.scheme}://127.0.0.1:{cable.port}", LONGER_SECONDS)) as broker:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while len(seen) < NUMBERED:
                        await consume(broker, address, seen, cable)
        return seen

    async def consume(broker: Broker, address: str, seen: list[int], cable: Cable) -> None:
        """Take batches until the line is cut, once, in the middle of a batch."""
        try:
            # Afterwards there is room for more: what is out must not be all that keeps new ones back.
            subscription = await broker.subscribe(address, GROUP, PREFETCH if cuts else 4 * PREFETCH)
        except Exception:  # noqa: BLE001  the line was cut: again, as a source does
            await asyncio.sleep(0.05)  # a pause, as a source makes one
            return
        try:
            while len(seen) < NUMBERED:
                came = await subscription.receive(3, 0.2)
                for delivery in came:
                    # What comes again is a duplicate, which a workflow knows by its id.
                    if int(delivery.body) not in seen:
                        seen.append(int(delivery.body))
                if cuts and len(seen) >= cuts[0]:
                    cuts.pop(0)
                    cable.cut()
                await subscription.acknowledge(came)
        except Exception:  # noqa: BLE001  as above
            await asyncio.sleep(0.05)  # as above
        finally:
            await subscription.close()

    cuts = [PREFETCH + PREFETCH // 3]  # in the middle of what was asked for
    assert asyncio.run(main()) == list(range(NUMBERED))
    assert cuts == []


def test_a_subject_that_no_stream_holds_is_an_error_and_the_others_are_confirmed() -> None:
    async def main() -> None:
        async with opened(broker_at("nats", nats_url())) as broker:
            good = Outgoing(own_address(), "m-1", b"{}")
            large = Outgoing(own_address(), "m-2", b"x" * 2_000_000)
            nowhere, taken, refused = await broker.publish([Outgoing("nowhere.at.all", "m-1", b"{}"), good, large])
            assert taken is None
            assert "has no stream for nowhere.at.all" in str(nowhere)
            assert isinstance(refused, DoNotRetryError)
            with pytest.raises(BrokerError, match="has no stream"):
                await broker.subscribe("nowhere.at.all", GROUP, PREFETCH)

    asyncio.run(main())


def test_what_is_too_large_only_with_its_headers_is_refused_and_costs_no_other_message() -> None:
    async def main() -> None:
        address = own_address()
        headers = f"NATS/1.0\r\nce-type: Count\r\nNats-Msg-Id: {address}#m-1\r\n\r\n"
        most = 1_048_576 - len(headers)  # the server's own limit, unless it is told otherwise
        async with opened(broker_at("nats", nats_url())) as broker:
            sizes = {"m-1": most, "m-2": most + 1, "m-3": 1}
            messages = [Outgoing(address, id, b"x" * size, {"ce-type": "Count"}) for id, size in sizes.items()]
            taken, refused, behind = await broker.publish(messages)
        assert (taken, behind) == (None, None)
        assert isinstance(refused, DoNotRetryError)

    asyncio.run(main())


def test_a_stream_made_anew_gives_its_messages_other_identities() -> None:
    async def main() -> list[Any]:
        stream = f"ANEW{uuid4().hex[:6]}"
        identities: list[Any] = []
        for _ in range(2):
            streams = {stream: [f"{stream}.>"]}
            async with opened(NatsBroker(nats_url(), streams=streams, takeover_seconds=TAKEOVER_SECONDS)) as broker:
                assert await broker.publish([Outgoing(f"{stream}.x", "m-1", b"{}")]) == [None]
                subscription = await broker.subscribe(f"{stream}.x", GROUP, PREFETCH)
                identities += [delivery.identity for delivery in await subscription.receive(1, PATIENCE_SECONDS)]
                await subscription.close()
            client = Client()
            await client.connect(nats_url())
            await client.jetstream().delete_stream(stream)
            await client.close()
        return identities

    first, second = asyncio.run(main())
    assert first != second
    assert (first.rpartition("/")[2], second.rpartition("/")[2]) == ("1", "1")


def test_a_consumer_that_somebody_deletes_is_told_and_made_anew() -> None:
    async def main() -> None:
        address = own_address()
        async with opened(broker_at("nats", nats_url())) as broker:
            subscription = await broker.subscribe(address, GROUP, PREFETCH)
            assert await subscription.receive(1, 0.05) == []
            client = Client()
            await client.connect(nats_url())
            await client.jetstream().delete_consumer("OWN", consumer_of(address, GROUP))
            await client.close()
            with pytest.raises(BrokerError, match="ended a request"):
                await subscription.receive(1, PATIENCE_SECONDS)
            await subscription.close()
            assert await broker.publish([Outgoing(address, "m-1", b"1")]) == [None]
            again = await broker.subscribe(address, GROUP, PREFETCH)
            assert [delivery.body for delivery in await again.receive(1, PATIENCE_SECONDS)] == [b"1"]
            await again.close()

    asyncio.run(main())


def test_a_turn_is_not_kept_by_one_who_left_while_the_server_was_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.brokers.nats_subscription.CLOSE_SECONDS", 0.2)
    server = nats_server()

    async def main() -> list[bytes]:
        address = own_address()
        async with opened(broker_at("nats", f"nats://127.0.0.1:{server.port}", MORTAL_SECONDS)) as broker:
            assert await broker.publish([Outgoing(address, "m-1", b"1")]) == [None]
            subscription, _ = await until(lambda: first_of(broker, address))
            server.kill()
            await subscription.close()
            server.start()
            again, (delivery,) = await until(lambda: first_of(broker, address))
            await again.close()
            return [delivery.body]

    async def first_of(broker: Broker, address: str) -> tuple[Subscription, list[Delivery]] | None:
        """Take the first message; None where the connection or the turn was lost, and a source would try again."""
        subscription: Subscription | None = None
        try:
            subscription = await broker.subscribe(address, GROUP, PREFETCH)
            if came := await subscription.receive(1, PATIENCE_SECONDS):
                return subscription, came
        except Exception as error:  # noqa: BLE001  the client's own errors have no common base
            log.info("it is tried again: %s", error)
        if subscription is not None:
            await subscription.close()
        return None

    try:
        server.start()
        assert asyncio.run(main()) == [b"1"]
    finally:
        server.remove()


def test_nothing_new_is_taken_before_what_a_dead_process_was_given_however_late_the_server_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(**given: Any) -> ConsumerConfig:
        """Let the server bring back what was out long after its time is up."""
        given["ack_wait"] = 10 * PATIENCE_SECONDS
        return ConsumerConfig(**given)

    async def main() -> None:
        address, published = own_address(), list[bytes]()
        with monkeypatch.context() as patch:
            patch.setattr("mainspring.brokers.nats.ConsumerConfig", late)
            dead = broker_at("nats", nats_url())
            assert await dead.publish([Outgoing(address, f"{address} 0", b"0")]) == [None]
            taken = await (await dead.subscribe(address, GROUP, PREFETCH)).receive(1, PATIENCE_SECONDS)
            assert [delivery.body for delivery in taken] == [b"0"]
            await dead.close()  # without leaving in order
            broker = broker_at("nats", nats_url(), MORTAL_SECONDS)
            await broker.open()
            error = await until(lambda: came(broker, address, 1, published))
            assert "has not brought back what was out" in str(error)
        # From here on the server is in time.
        both = await until(lambda: came(broker, address, 2, published))
        assert both == [b"0", *published][: len(both)]
        await broker.close()

    async def came(
        broker: Broker, address: str, count: int, published: list[bytes]
    ) -> list[bytes] | BrokerError | None:
        """Publish one more, and take so many; None where the turn was lost, as on a busy machine it may be."""
        published.append(b"%d" % (len(published) + 1))
        new = Outgoing(address, f"{address} {len(published)}", published[-1])
        assert await broker.publish([new]) == [None]
        subscription = await broker.subscribe(address, GROUP, PREFETCH)
        try:
            found: list[Delivery] = []
            while len(found) < count:
                found += await subscription.receive(count, PATIENCE_SECONDS)
            await subscription.acknowledge(found)
        except BrokerError as error:
            return None if "let the turn go" in str(error) else error
        finally:
            await subscription.close()
        return [delivery.body for delivery in found]

    asyncio.run(main())


def test_what_a_dead_process_was_given_comes_in_its_order_whenever_the_time_of_each_is_up() -> None:
    async def main() -> None:
        address, bodies = own_address(), [b"1", b"2", b"3"]
        dead = broker_at("nats", nats_url())
        for body in bodies:
            assert await dead.publish([Outgoing(address, f"{address} {body}", body)]) == [None]
        subscription = await dead.subscribe(address, GROUP, PREFETCH)
        given: list[Delivery] = []
        while len(given) < len(bodies):
            given += await subscription.receive(len(bodies), PATIENCE_SECONDS)
        for delivery in reversed(given):
            await subscription.extend([delivery])
            await asyncio.sleep(0.02)  # so much later the time of the one before it is up
        await dead.close()  # without leaving in order
        broker = broker_at("nats", nats_url(), MORTAL_SECONDS)
        await broker.open()
        assert await until(lambda: taken(broker, address)) == bodies
        await broker.close()

    async def taken(broker: Broker, address: str) -> list[bytes] | None:
        """Take them; None where the turn was lost, as on a busy machine it may be."""
        subscription = await broker.subscribe(address, GROUP, PREFETCH)
        try:
            found: list[Delivery] = []
            while len(found) < 3:
                found += await subscription.receive(3, PATIENCE_SECONDS)
            await subscription.acknowledge(found)
        except BrokerError as error:
            log.info("it is tried again: %s", error)
            return None
        finally:
            await subscription.close()
        return [delivery.body for delivery in found]

    asyncio.run(main())


def test_redis_does_not_take_for_known_what_it_could_not_add() -> None:
    async def main() -> None:
        address, client = own_address(), Redis.from_url(redis_url())
        async with opened(RedisBroker(redis_url())) as broker:
            await client.set(address, "no stream")
            for _ in range(2):
                (outcome,) = await broker.publish([Outgoing(address, "m-1", b"{}")])
                assert "WRONGTYPE" in str(outcome)
            await client.delete(address)
            assert await broker.publish([Outgoing(address, "m-1", b"{}")]) == [None]
            assert await client.xlen(address) == 1
        await client.aclose()

    asyncio.run(main())


def test_redis_forgets_an_id_after_its_time_and_removes_what_is_acknowledged_if_told_so() -> None:
    async def main() -> None:
        address, client = own_address(), Redis.from_url(redis_url())
        async with opened(RedisBroker(redis_url())) as patient:
            for _ in range(2):
                assert await patient.publish([Outgoing(address, "m-1", b"{}")]) == [None]
            assert await client.xlen(address) == 1
        async with opened(RedisBroker(redis_url(), duplicate_seconds=0.05, delete=True)) as broker:

            async def is_added_again() -> bool:
                assert await broker.publish([Outgoing(address, "m-2", b"{}")]) == [None]
                return await client.xlen(address) == 3

            await until(is_added_again)
            subscription = await broker.subscribe(address, GROUP, PREFETCH)
            await subscription.acknowledge(await subscription.receive(3, PATIENCE_SECONDS))
            await subscription.close()
            assert await client.xlen(address) == 0
        await client.aclose()

    asyncio.run(main())


def test_redis_confirms_only_what_is_on_disk_if_told_so() -> None:
    async def main() -> None:
        async with opened(RedisBroker(redis_url(), wait_for_disk=True)) as broker:
            (outcome,) = await broker.publish([Outgoing(own_address(), "m-1", b"{}")])
            assert "appendonly is disabled" in str(outcome)
        server = valkey_server(synced=True)
        server.start()
        try:
            url = f"redis://127.0.0.1:{server.port}"
            async with opened(RedisBroker(url, wait_for_disk=True)) as broker:
                assert await broker.publish([Outgoing(own_address(), "m-1", b"{}")]) == [None]
        finally:
            server.remove()

    asyncio.run(main())


def test_what_other_readers_of_a_group_left_comes_before_anything_new() -> None:
    async def main() -> list[bytes]:
        address, client = own_address(), Redis.from_url(redis_url())
        async with opened(broker_at("redis", redis_url())) as broker:
            await client.xgroup_create(address, GROUP, id="0", mkstream=True)
            both = [Outgoing(address, "m-1", b"1"), Outgoing(address, "m-2", b"2")]
            assert await broker.publish(both) == [None, None]
            await client.xreadgroup(GROUP, "somebody", {address: ">"}, count=1)
            subscription = await broker.subscribe(address, GROUP, PREFETCH)
            came = await subscription.receive(1, PATIENCE_SECONDS) + await subscription.receive(1, PATIENCE_SECONDS)
            await subscription.close()
        await client.aclose()
        return [delivery.body for delivery in came]

    assert asyncio.run(main()) == [b"1", b"2"]


def test_settings_that_make_no_sense_are_refused() -> None:
    for make in (NatsBroker, RedisBroker):
        with pytest.raises(SettingError, match="takeover_seconds"):
            make("x://localhost", takeover_seconds=0.1)
        for endless in (float("inf"), float("nan")):
            with pytest.raises(SettingError, match=r"takeover_seconds is .*Use seconds from 0\.5 to 3,600"):
                make("x://localhost", takeover_seconds=endless)
    for seconds in (0, float("inf")):
        with pytest.raises(SettingError, match="duplicate_seconds"):
            RedisBroker("redis://localhost", duplicate_seconds=seconds)
    for replicas in (0, 6):
        with pytest.raises(SettingError, match="replicas"):
            NatsBroker("nats://localhost", replicas=replicas)


def test_a_server_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.brokers.nats.CONNECT_SECONDS", 0.1)

    async def main() -> None:
        async with opened(NatsBroker("nats://127.0.0.1:1")) as broker:
            with pytest.raises(BrokerError, match="cannot be reached"):
                await broker.publish([Outgoing("x", "m-1", b"{}")])

    asyncio.run(main())

"""A broker of the simulated world: what waits at it outlives every process, and it goes wrong as the plan says.

It keeps what every broker must (`mainspring.brokers.port`) and no more: it knows no ids, so that what is published
twice is there twice; what was acknowledged may come again, and who acknowledges too late is not heard.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from mainspring.brokers.port import Delivery, Outgoing
from mainspring.errors import BrokerError

if TYPE_CHECKING:
    from tests.proof.simulation.world import World

LOOK_SECONDS: Final = 0.2
GONE_SECONDS: Final = 5.0

T = TypeVar("T")


class Member:
    """A consumer of an address, as the broker knows it."""

    def __init__(self, party: str) -> None:
        self.party = party
        self.out: set[int] = set()


class Post:
    """The broker itself."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.plan.random("post")
        self.logs: defaultdict[str, list[Outgoing]] = defaultdict(list)
        self.acknowledged: defaultdict[str, set[int]] = defaultdict(set)
        self.members: defaultdict[str, list[Member]] = defaultdict(list)
        # When each message was acknowledged, by its place.
        self.heard: list[tuple[int, str, int]] = []
        self._attempts: Counter[tuple[str, int]] = Counter()
        self._gone: set[str] = set()

    def waiting(self) -> list[str]:
        """Return what is taken from here and was not acknowledged."""
        return [
            f"{self.logs[address][place - 1].id} waits at the broker"
            for address in self.members
            for place in range(1, len(self.logs[address]) + 1)
            if place not in self.acknowledged[address]
        ]

    def leave(self, party: str) -> None:
        """Know that a process is gone: what it has not acknowledged goes to the next."""
        self._gone.add(party)
        for members in self.members.values():
            members[:] = [member for member in members if member.party != party]

    def join(self, address: str, member: Member) -> None:
        """Let a consumer in, behind those who are there."""
        if member.party not in self._gone:  # its word may come when it is gone
            self.members[address].append(member)

    def fires(self, kind: str, share: float, who: str, what: str) -> bool:
        """Tell whether something goes wrong now, and write it down."""
        if not self.world.active(kind) or self.random.random() >= share:
            return False
        self.world.trace.fault(kind, who, what)
        return True

    def next(self, address: str, member: Member, held: set[int], limit: int) -> list[Delivery]:
        """Return the next deliveries for a consumer that has some in its hands, if it is the one whose turn it is."""
        self._check(address, member)
        member.out &= held  # what was on its way when nobody waited for it any more comes again
        if self.members[address][0] is not member:
            return []
        acknowledged = self.acknowledged[address]
        if acknowledged and self.fires("redelivery", 0.1, "post", f"{address}: an acknowledgement is forgotten"):
            acknowledged.discard(self.random.choice(sorted(acknowledged)))
        log, taken = self.logs[address], acknowledged | member.out
        free = [place for place in range(1, len(log) + 1) if place not in taken][:limit]
        member.out.update(free)
        self._attempts.update((address, place) for place in free)
        return [self._delivery(address, place) for place in free]

    def _delivery(self, address: str, place: int) -> Delivery:
        message = self.logs[address][place - 1]
        attempt = self._attempts[address, place]
        return Delivery(message.body, message.headers, f"post:{address}/{place}", None, attempt, place)

    def hear(self, address: str, member: Member, places: set[int]) -> None:
        """Take an acknowledgement."""
        if self.fires("late_acknowledgement", 0.5, member.party, f"{address}: its messages are another's by now"):
            self.members[address].remove(member)
        self._check(address, member)
        self.acknowledged[address] |= places & member.out
        self.heard += [(self.world.loop.now_us, address, place) for place in sorted(places & member.out)]
        member.out -= places

    def _check(self, address: str, member: Member) -> None:
        if member not in self.members[address]:
            raise BrokerError("post", "takes this consumer for gone", "Subscribe anew.")


class Branch:
    """A process's connection to it: the broker port."""

    def __init__(self, post: Post, party: str) -> None:
        self.post = post
        self.party = party
        self._random = post.world.plan.random(f"post/{party}")

    async def ask(self, what: str, do: Callable[[], T], refused: float = 0.05) -> T:
        """Let something be done there, or be refused now and then."""

        def happen() -> T:
            if self.post.fires("broker_away", refused, self.party, f"the broker refuses to {what}"):
                raise BrokerError("post", "is away", "Wait.")
            return do()

        slow = 3.0 if self.post.world.active("slow") and self._random.random() < 0.1 else 0.0
        there, back = self._random.uniform(0.001, 0.05) + slow, self._random.uniform(0.001, 0.05)
        return await self.post.world.loop.remote(happen, there, back)

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def subscribe(self, address: str, group: str, prefetch: int) -> Taking:
        member = Member(self.party)
        await self.ask("let it in", lambda: self.post.join(address, member))
        return Taking(self, address, member)

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        def keep() -> list[Exception | None]:
            for message in messages:
                self.post.logs[message.address].append(message)
            if self.post.fires("lost_confirmation", 0.6, self.party, "the broker has it, and nobody hears of it"):
                raise BrokerError("post", "was lost", "Publish it again.")
            return [None] * len(messages)

        return await self.ask("publish", keep, refused=0.4)

    async def lag(self, address: str, group: str) -> int | None:
        return None


class Taking:
    """A subscription."""

    def __init__(self, branch: Branch, address: str, member: Member) -> None:
        self._branch = branch
        self._address = address
        self._member = member
        self._held: set[int] = set()

    async def receive(self, limit: int, wait_seconds: float) -> list[Delivery]:
        post, loop = self._branch.post, self._branch.post.world.loop
        ends = loop.time() + wait_seconds
        while True:
            given = self._address, self._member, set(self._held), limit
            found = await self._branch.ask("deliver", lambda: post.next(*given))  # noqa: B023  it is awaited
            self._held.update(delivery.token for delivery in found)
            if found or loop.time() >= ends:
                return found
            await asyncio.sleep(LOOK_SECONDS)

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        places = {delivery.token for delivery in deliveries}
        await self._branch.ask("hear", lambda: self._branch.post.hear(self._address, self._member, places))
        self._held -= places

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        self._held.difference_update(delivery.token for delivery in deliveries)  # it hears of it at the next word

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        await self._branch.ask("wait", lambda: None)

    async def close(self) -> None:
        def leave() -> None:
            with suppress(ValueError):  # it was taken for gone
                self._branch.post.members[self._address].remove(self._member)

        try:
            await self._branch.ask("let it go", leave)
        except BrokerError:
            self._branch.post.world.loop.elsewhere(GONE_SECONDS, leave)  # what it does not hear, it finds out

"""Many workers on one database: each has its share and no more, nobody steps out of turn, the dead are relieved."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any, ClassVar

import pytest

from mainspring import Decisions, Event, Kind, Mainspring, Send, Workflow
from mainspring.app.internals import internals_of
from mainspring.engine import engine
from mainspring.engine.claiming.claimer import CLAIM_LIMIT, Claimer
from mainspring.errors import StoreError, StoreUnreachableError
from mainspring.port.records import Loaded, Ref
from mainspring.stores.postgres import PostgresStore, work
from tests.engine.jobs import Done, Job, Start, Work, Working, job
from tests.support.apps import MakeApp
from tests.support.paths import ROOT
from tests.support.postgres.server import postgres_url
from tests.support.running import run
from tests.support.waiting import until


async def nothing_is_left(app: Mainspring) -> bool:
    stats = await app.stats()
    return stats.outbox == stats.inbox == 0


# ---- fair shares

JOBS = 60
# Of them, those that three workers do in step with each other.
TOGETHER = 30


@pytest.mark.parametrize("sent_by", ["a worker", "a client"])
def test_a_backlog_of_slow_commands_is_shared(sent_by: str, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever commits a step owns its outputs, but no more of them than it can carry out soon.

    For a while nobody is done before all three have both hands full: who took everything would wait in vain.
    """
    # Slow is what takes longer than this: then how long a worker is kept waiting here does not matter.
    monkeypatch.setattr("mainspring.engine.handlers.prefetch.AHEAD_SECONDS", 1e-9)
    # Nobody tells those who look in vain of what another has left: they would look again after a second.
    monkeypatch.setattr("mainspring.engine.claiming.claimer.POLL_SECONDS", 0.05)
    all_at_work = asyncio.Barrier(3 * 2)
    done: Counter[str] = Counter()
    most: Counter[str] = Counter()
    running: Counter[str] = Counter()
    begun: Counter[str] = Counter()

    def app(name: str) -> Mainspring:
        async def work(command: Work) -> Done:
            running[name] += 1
            most[name] = max(most[name], running[name])
            begun["all"] += 1
            if begun["all"] <= TOGETHER:
                await all_at_work.wait()
            running[name] -= 1
            done[name] += 1
            return Done(command.id, command.part)

        return job(make_app(), work, concurrency=2)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            workers = [await stack.enter_async_context(app(name)) for name in ("a", "b", "c")]
            sender = workers[0]
            if sent_by == "a client":
                sender = app("none")
                await sender.start(work=False)
                stack.push_async_callback(sender.stop)
            await sender.send_many([Start(f"j-{n}") for n in range(JOBS)])
            await until(lambda: nothing_is_left(workers[1]))

    run(main)
    assert sum(done.values()) == JOBS
    assert min(done[name] for name in "abc") >= TOGETHER // 3, done
    assert set(most.values()) == {2}


def test_a_worker_holds_no_more_than_it_can_carry_out_soon(make_app: MakeApp) -> None:
    gate = asyncio.Event()

    async def work(command: Work) -> Done:
        await gate.wait()
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, concurrency=3) as app:
            await app.send_many([Start(f"j-{n}", times=2) for n in range(JOBS)])
            [runner] = internals_of(app).engine.dispatcher.runners
            await until(lambda: runner.active == 3)
            held = await internals_of(app).engine.store.holds(internals_of(app).engine.committer.worker)
            in_hand, most = runner.in_hand, runner.prefetch.most
            gate.set()  # before anything may fail: else stopping would wait for what waits here
            await until(lambda: nothing_is_left(app))
            assert most == 6
            # While it asks for as many as there is room for, steps of its own may fill that room: twice at most.
            assert in_hand <= 2 * most
            assert len(held) <= 2 * most

    run(main)


class Queued(Job):
    """Everything goes through the inbox. It counts what is decided by this worker."""

    name = "Job"
    mode: ClassVar = "inbox"
    decided = 0

    def decide(self, message: Start | Done, state: Working) -> Decisions[Start | Done, Work] | None:
        self.decided += 1
        return []


@dataclass(frozen=True)
class Pack:
    id: str


@dataclass(frozen=True)
class Label:
    id: str


class Parcel(Workflow[Start | Done, Working, Pack | Label | Work]):
    begins = Start
    initial_state = Working()

    def route(self, message: Start | Done) -> str | None:
        return message.id

    def decide(self, message: Start | Done, state: Working) -> Decisions[Start | Done, Pack | Label | Work] | None:
        if isinstance(message, Done):
            return []
        return [Send(command) for n in range(message.times) for command in (Pack("p"), Label("p"), Work("p", n))]

    def evolve(self, state: Working, event: Event[Start | Done, Pack | Label | Work]) -> Working | None:
        return None


def test_many_handlers_with_little_room_are_looked_after_at_once(make_app: MakeApp) -> None:
    """A look for each of them, every second, would be all that an idle worker does."""
    done: Counter[str] = Counter()
    looks: list[Sequence[str]] = []

    async def main() -> None:
        app = make_app()
        app.add(Parcel())

        def carry_out(kind: type[Any]) -> None:
            async def handle(command: Any) -> None:
                done[kind.__name__] += 1

            handle.__annotations__["command"] = kind
            app.handler(concurrency=1)(handle)

        for kind in (Pack, Label, Work):
            carry_out(kind)
        async with app:
            claim = internals_of(app).engine.store.claim

            async def counted(worker: int, destinations: Sequence[str], *rest: Any) -> Any:
                looks.append(destinations)
                return await claim(worker, destinations, *rest)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(internals_of(app).engine.store, "claim", counted)
                internals_of(app).engine.wakeups.due_at(0)
                await until(lambda: bool(looks) and internals_of(app).engine.claimer.idle)
            await app.send(Start("p", times=20))
            await until(lambda: nothing_is_left(app))

    run(main)
    assert done == {"Pack": 20, "Label": 20, "Work": 20}
    narrow = [look for look in looks if "Pack" in look]
    assert narrow
    assert all({"Pack", "Label", "Work"} <= set(look) for look in narrow)


INPUTS = 2 * CLAIM_LIMIT + 200


def test_a_backlog_of_inputs_is_shared(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    together, claimed = asyncio.Barrier(2), set[Claimer]()
    claim = Claimer._claim  # noqa: SLF001  else whoever is quicker could take all before the other has claimed once

    async def claim_together(claimer: Claimer, worker: int) -> bool:
        # Apps of other tests may run in this process, in threads of their own: the studio's, for instance.
        others = asyncio.get_running_loop() is not loop
        if others or claimer in claimed:
            return await claim(claimer, worker)
        claimed.add(claimer)
        await together.wait()
        more = await claim(claimer, worker)
        await together.wait()
        return more

    loop: asyncio.AbstractEventLoop | None = None
    monkeypatch.setattr(Claimer, "_claim", claim_together)

    async def main() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        sender = make_app()
        sender.add(Queued())
        await sender.start(work=False)
        await sender.send_many([Start(f"j-{n}") for n in range(INPUTS)])
        await sender.stop()
        workflows = [Queued(), Queued()]
        apps = [make_app() for _ in workflows]
        for app, workflow in zip(apps, workflows, strict=True):
            app.add(workflow)
        await asyncio.gather(*(app.start() for app in apps))
        await until(lambda: nothing_is_left(apps[0]))
        # Who loses a race for an instance decides once more.
        assert sum(workflow.decided for workflow in workflows) >= INPUTS
        assert min(workflow.decided for workflow in workflows) >= CLAIM_LIMIT, [each.decided for each in workflows]
        for app in apps:
            await app.stop()

    run(main)


def test_news_of_work_make_no_stampede(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight idle workers that hear of one output, each looks once or twice, and tries to take it once at most."""
    monkeypatch.setattr(
        "mainspring.engine.claiming.claimer.POLL_SECONDS", 3_600
    )  # a slow machine would have time for many
    counts: Counter[str] = Counter()
    look, claim = PostgresStore.claim, work.claim

    async def counted_look(store: Any, *asked: Any) -> Any:
        counts["looks"] += 1
        return await look(store, *asked)

    async def counted_claim(*asked: Any) -> Any:
        counts["claims"] += 1
        return await claim(*asked)

    async def handle(command: Work) -> Done:
        counts["handled"] += 1
        return Done(command.id, command.part)

    async def main() -> None:
        url, news = postgres_url(tmp_path), 10
        async with AsyncExitStack() as stack:
            workers = [await stack.enter_async_context(job(Mainspring(url), handle)) for _ in range(8)]
            sender = job(Mainspring(url), handle)
            await sender.start(work=False)
            stack.push_async_callback(sender.stop)
            monkeypatch.setattr(PostgresStore, "claim", counted_look)
            monkeypatch.setattr(work, "claim", counted_claim)
            for n in range(news):
                await sender.send(Start(f"j-{n}"))
                await until(lambda: nothing_is_left(sender))
                # All have heard of it, and have looked.
                await until(lambda n=n: all(internals_of(each).engine.claimer.rounds > n for each in workers))
                await until(lambda: all(internals_of(each).engine.claimer.idle for each in workers))
                if n == 4:
                    counts.clear()  # they know by now who is quick
            assert counts["handled"] == news - 5
            assert counts["looks"] <= counts["handled"] * 8 * 2, counts
            assert counts["claims"] <= counts["handled"] * 8, counts

    run(main)


# ---- the dead, and those who are taken for dead


class WorkerProcess:
    """A worker in a process of its own, with a lease, that works on each command until it is told to go on."""

    def __init__(self, url: str, lease_seconds: float) -> None:
        command = [sys.executable, "-m", "tests.engine.worker_process", url, str(lease_seconds)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)  # noqa: S603  our own

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()

    async def says(self, word: str) -> None:
        assert self.process.stdout is not None
        assert (await asyncio.to_thread(self.process.stdout.readline)).strip() == word

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@asynccontextmanager
async def at_work(url: str, lease_seconds: float) -> AsyncGenerator[WorkerProcess]:
    """Give a process that is in the middle of its work on the only command that there is."""
    client = job(Mainspring(url), _promptly)
    await client.start(work=False)
    process = WorkerProcess(url, lease_seconds)
    try:
        await client.send(Start("j-1"))
        await process.says("working")
        yield process
    finally:
        process.end()
        await client.stop()


async def _promptly(command: Work) -> Done:
    return Done(command.id, command.part)


@pytest.mark.parametrize(("pooler", "lease_seconds"), [("", 3_600), ("&pooler=transaction", 1)])
def test_a_killed_worker_is_taken_over_in_time(
    pooler: str, lease_seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before its lease is over; where nobody can know that it is dead, after that."""
    monkeypatch.setattr(engine, "RELIEVE_SECONDS", 0.2)

    async def body() -> None:
        url = postgres_url(tmp_path) + pooler
        async with at_work(url, lease_seconds) as worker, job(Mainspring(url), _promptly) as app:
            worker.end()
            await app.instance(Job, "j-1").result()

    run(body)


def test_a_worker_that_wakes_up_after_its_relief_commits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RELIEVE_SECONDS", 0.2)

    async def body() -> None:
        url = postgres_url(tmp_path)
        async with at_work(url, lease_seconds=1) as zombie, job(Mainspring(url), _promptly) as app:
            zombie.process.send_signal(SIGSTOP)
            await app.instance(Job, "j-1").result()
            stream = await app.instance(Job, "j-1").stream()
            zombie.process.send_signal(SIGCONT)
            zombie.go_on()
            await zombie.says("worked")
            # It lives, and has noticed: it is known again under a new key.
            await until(lambda: _workers(app, 2))
            assert await app.instance(Job, "j-1").stream() == stream
            assert [entry.kind for entry in stream].count(Kind.RESULT) == 1
            assert zombie.process.poll() is None

    run(body)


async def _workers(app: Mainspring, count: int) -> bool:
    return (await app.stats()).workers == count


# ---- a store in trouble

TROUBLE = {
    "unreachable": StoreUnreachableError("postgresql://db/shop", "it is restarted"),
    "too slow": StoreError("postgresql://db/shop", "took more than 30 s for a statement", "Try again."),
}


@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE.keys())
def test_an_input_that_could_not_be_loaded_for_is_kept_until_the_store_is_well(
    trouble: StoreError, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker holds it: if it let it go, nobody else would ever take it."""

    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        sender = job(make_app(), work)
        await sender.start(work=False)
        await sender.send(Start("j-1"))
        kind: Any = type(internals_of(sender).engine.store)
        await sender.stop()
        load, refusals = kind.load, [trouble] * 2

        async def refuses(store: Any, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
            if refusals and refs[0].workflow == "Job":
                raise refusals.pop()
            return await load(store, refs, most)

        monkeypatch.setattr("mainspring.engine.stepping.loader.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.01)
        monkeypatch.setattr(kind, "load", refuses)
        async with job(make_app(), work) as app:
            await until(lambda: not refusals)
            await app.instance(Job, "j-1").result()
            assert (await app.instance(Job, "j-1").row()).status == "completed"

    run(main)

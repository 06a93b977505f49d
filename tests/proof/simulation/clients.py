"""Who stands outside: clients that send, people who answer tasks, operators; and the ledger of what they were told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Final

from msgspec import json

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.brokers.port import Outgoing
from mainspring.engine.operations.known_pauses import pauses_of
from mainspring.errors import (
    DuplicateIdError,
    MainspringError,
    NoReplyError,
    OperationError,
    StoreError,
    TaskRefusedError,
)
from mainspring.port.records import ENDED, InstanceRow, Ref
from mainspring.port.tasks import TaskFilter
from tests.proof.crash.evidence import Asked
from tests.proof.crash.journey import Deposit, Note, Start
from tests.proof.simulation import consignments, contracts, petitions, score, workflows
from tests.proof.simulation.evidence import GIVEN

if TYPE_CHECKING:
    from tests.proof.simulation.node import Node
    from tests.proof.simulation.world import World

PATIENCE_SECONDS: Final = 20.0
REQUEST: Final = timedelta(seconds=10)
TRIES: Final = 200
NODE_LOOKS: Final = 7_200
ENDING: Final = frozenset(
    {"Journey", "Holiday", "Project", "Errand", "Approval", "Gauge", "Score", "Contract", "Consignment", "Petition"}
    | {"mainspring.FanOut"}
)
PURGED: Final = ("Holiday", "Project", "Errand", "Approval", "Score", "Contract")
OPERATED: Final = frozenset({"Holiday", "Project", "Approval", "Gauge", "Errand"})


@dataclass(frozen=True)
class Outcome:
    """What somebody was told who answered a task."""

    task: str
    first: bool
    by: str
    answer: str


class Clients:
    """All of them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._plan = world.plan
        self.asked: list[Asked] = []
        self.replies: list[tuple[str, Any]] = []
        # Requests of which somebody was told that no reply comes, and who was asked.
        self.unreplied: list[tuple[str, str]] = []
        self.outcomes: list[Outcome] = []
        self._lines = 0
        self._network = world.plan.random("network")
        self.operated: set[str] = set()

    async def work(self) -> None:
        """Do all that is planned, until everybody has got an answer."""
        scripts = {
            "journey": self._journey,
            "holiday": self._holiday,
            "project": self._project,
            "approval": self._approval,
            "gauge": self._gauge,
            "score": self._score,
            "contract": self._contract,
            "parcel": self._consignment,
            "petition": self._petition,
        }
        await asyncio.gather(
            *(
                scripts[kind](f"{kind[0]}-{n}", self._plan.random(f"{kind}/{n}"))
                for kind, count in self._plan.cast
                for n in range(count)
            ),
            self._people(),
            self._operators(),
            self._archivists(),
            self._pausers(),
            self._petitioners(),
        )

    # ---- scripts

    async def _soon(self, random: Random) -> None:
        await asyncio.sleep(random.random() * 0.6 * self._plan.fault_seconds)

    async def _journey(self, id: str, random: Random) -> None:
        await self._soon(random)
        account = f"a-{random.randrange(2)}"
        if self._plan.random(f"chosen/{id}").random() < 0.5:
            # The very id that its question to the account is about to have.
            await self.send(Deposit(account, 50), f"Account/{account}", f"{GIVEN}Journey/{id}/5")
        await self.send(Start(id, account, random.random() < 0.4), f"Journey/{id}", f"{id}-start")
        await asyncio.gather(
            *(self._note(id, n, random.random() * 3) for n in range(random.randrange(4))),
            *(
                self.send(Deposit(account, n + 1), f"Account/{account}", f"{id}-deposit-{n}")
                for n in range(random.randrange(3))
            ),
        )

    async def _note(self, id: str, number: int, seconds: float) -> None:
        await asyncio.sleep(seconds if self._world.active("reorder") else number * 0.2)
        await self.send(Note(id, number), f"Journey/{id}", f"{id}-note-{number}")

    async def _holiday(self, id: str, random: Random) -> None:
        await self._soon(random)
        steps = random.randint(1, 4)
        plan = workflows.PlanHoliday(id, steps, random.choice((0, 0, random.randint(1, steps))), random.random() < 0.3)
        await self.send(plan, f"Holiday/{id}", f"{id}-plan")

    async def _project(self, id: str, random: Random) -> None:
        await self._soon(random)
        start = workflows.StartProject(id, random.randint(0, 3), random.randint(0, 4), random.random() < 0.3)
        await self.send(start, f"Project/{id}", f"{id}-start")

    async def _approval(self, id: str, random: Random) -> None:
        await self._soon(random)
        await self.send(workflows.Submit(id), f"Approval/{id}", f"{id}-submit")

    async def _gauge(self, id: str, random: Random) -> None:
        await self._soon(random)
        to = f"Gauge/{id}"
        await self.send(workflows.Install(id), to, f"{id}-install")
        for n in range(random.randint(1, 5)):
            await self.send(workflows.Read(id, random.randint(1, 8)), to, f"{id}-read-{n}")
            if random.random() < 0.3:
                await self.send(workflows.AskTotal(id), to, f"{id}-total-{n}", request=True)
        if random.random() < 0.5:
            # The same id with another body is refused, however often it is tried.
            await self.send(workflows.Read(id, 100), to, f"{id}-read-0")
        end = self.send(workflows.Remove(id), to, f"{id}-remove")
        if self._plan.random(f"late/{id}").random() < 0.5:
            # Whoever asks at the end gets a reply, or hears that none comes.
            await asyncio.gather(end, self.send(workflows.AskTotal(id), to, f"{id}-total-late", request=True))
        else:
            await end

    async def _score(self, id: str, random: Random) -> None:
        await self._soon(random)
        to = f"Score/{id}"
        for round in range(random.randint(1, 3)):
            # Several at once, at whichever process: steps that are built on each other meet those of others.
            points = [score.Point(id, random.randint(1, 9)) for _ in range(random.randint(1, 5))]
            await asyncio.gather(*(self.send(p, to, f"{id}-point-{round}-{n}") for n, p in enumerate(points)))
            await asyncio.sleep(random.choice((0, 5)) * random.random())
        await self.send(score.Close(id), to, f"{id}-close")

    async def _contract(self, id: str, random: Random) -> None:
        await self._soon(random)
        to = f"Contract/{id}"
        await self.send(contracts.Draft(id), to, f"{id}-draft")
        for n in range(random.randint(1, 4)):
            await self.send(contracts.Clause(id, random.randint(1, 9)), to, f"{id}-clause-{n}")
            if random.random() < 0.3:
                await self._try("migrate", lambda: self._migrate(to))
            await asyncio.sleep(random.choice((0, 4)) * random.random())
        await self.send(contracts.Sign(id), to, f"{id}-sign")

    async def _petition(self, id: str, random: Random) -> None:
        await self._soon(random)
        await self.send(petitions.File(id, random.random() < 0.5), f"Petition/{id}", f"{id}-file")

    async def _migrate(self, ref: str) -> None:
        self._world.trace.line("operator", f"migrates {ref}")
        await self.at(await self._node(), lambda app: app.instance_at(ref).migrate(2, actor="olga"))

    async def _consignment(self, id: str, random: Random) -> None:
        await self._soon(random)
        scans = random.randint(1, 5)
        self._post(f"{id}-ship", consignments.Ship(id, scans))
        for n in range(scans):
            await asyncio.sleep(random.choice((0, 0.5, 3)) * random.random())
            self._post(f"{id}-scan-{n}", consignments.Scan(id, n))

    def _post(self, id: str, message: Any) -> None:
        """Give a message to the broker; now and then twice, as who was not told that it has it does."""
        headers = {"ce-id": id, "ce-source": consignments.SENDER, "ce-type": type(message).__name__}
        post = self._world.post
        for _ in range(2 if post.fires("duplicate", 0.3, "client", f"{id} is posted twice") else 1):
            post.logs[consignments.TAKEN].append(Outgoing(consignments.TAKEN, id, json.encode(message), headers))
        self._world.trace.line("client", f"posts {id}: {message}")

    # ---- sending

    async def send(self, message: Any, to: str, id: str, *, request: bool = False) -> None:
        """Send a message until somebody says what became of it; now and then once more."""
        random = self._plan.random(f"send/{id}")
        for _ in range(TRIES):
            answer = await self._ask(message, to, id, request=request)
            if answer != "unknown":
                break
            await asyncio.sleep(random.uniform(0.1, 2))
        else:
            self._world.complaints.append(f"{id} was asked {TRIES} times and got no answer")
        if self._world.active("duplicate") and random.random() < 0.5:
            self._world.trace.fault("duplicate", "client", id)
            await asyncio.sleep(random.choice((0, 0.5, 5)))
            await self._ask(message, to, id, request=request)

    async def _ask(self, message: Any, to: str, id: str, *, request: bool) -> str:
        node = await self._node()
        if self._world.active("duplicate") and self._network.random() < 0.1:
            self._world.trace.fault("duplicate", "client", f"{id} travels twice")
            other = self._network.choice(self._world.ready_nodes() or [node])
            first, _ = await asyncio.gather(
                self._ask_at(node, message, to, id, request=request),
                self._ask_at(other, message, to, id, request=request),
            )
            return first
        return await self._ask_at(node, message, to, id, request=request)

    async def _ask_at(self, node: Node, message: Any, to: str, id: str, *, request: bool) -> str:
        index = len(self.asked)
        body = json.encode(message).decode()
        self.asked.append(Asked(id, to, type(message).__name__, body, self._line(), self._world.loop.now_us))
        self._world.trace.line("client", f"asks {node.party.name} for {id}: {message}")

        async def call(app: Mainspring) -> str:
            if request:
                return await self._request(app, message, to, id)
            return (await app.send(message, id=id.removeprefix(GIVEN))).status

        answer, status = "unknown", None
        try:
            status = await self.at(node, call)
            answer = "ok"
        except DuplicateIdError:
            answer = "refused"
        except (MainspringError, TimeoutError) as error:
            status = type(error).__name__
        # Who does not know what became of it was not told anything.
        told_line = None if answer == "unknown" else self._line()
        self.asked[index] = replace(self.asked[index], answer=answer, status=status, told_line=told_line)
        self._world.trace.line("client", f"is told {id}: {answer} {status}")
        return answer

    async def _request(self, app: Mainspring, message: Any, to: str, id: str) -> str:
        try:
            reply = await app.request(message, id=id, timeout=REQUEST)
        except NoReplyError:
            self.unreplied.append((id, to))
            return "no reply"
        self.replies.append((id, reply))
        return "replied"

    def _line(self) -> int:
        self._lines += 1
        return self._lines

    async def _node(self) -> Node:
        for _ in range(NODE_LOOKS):
            if ready := self._world.ready_nodes():
                return self._network.choice(ready)
            await asyncio.sleep(0.5)
        raise LookupError("no process has served clients for an hour")

    async def at(self, node: Node, call: Callable[[Mainspring], Awaitable[Any]]) -> Any:
        """Let a process do something, and return what it answers; nothing may ever come back."""
        loop, app = self._world.loop, node.app
        answer: asyncio.Future[Any] = loop.create_future()

        async def serve() -> None:
            try:
                result = await call(app)  # type: ignore[arg-type]  it is ready
            except Exception as error:  # noqa: BLE001  whatever it is, the caller is told
                failure = error
                loop.elsewhere(0.001, lambda: None if answer.done() else answer.set_exception(failure))
            else:
                loop.elsewhere(0.001, lambda: None if answer.done() else answer.set_result(result))

        def arrive() -> None:
            if not node.party.dead:
                loop.begin(node.party, serve(), "serve")

        if self._world.active("drop") and self._network.random() < 0.15:
            self._world.trace.fault("drop", "client", "a message is lost")
        else:
            loop.elsewhere(self._way(), arrive)
        return await asyncio.wait_for(answer, PATIENCE_SECONDS)

    def _way(self) -> float:
        random = self._network
        if self._world.active("delay") and random.random() < 0.15:
            self._world.trace.fault("delay", "client", "a message is late")
            return random.uniform(1, 15)
        if self._world.active("reorder") and random.random() < 0.5:
            self._world.trace.fault("reorder", "client", "a message may be overtaken")
            return random.uniform(0, 0.5)
        return 0.001

    # ---- people

    async def _people(self) -> None:
        random = self._plan.random("people")
        while not self._world.peace:
            await asyncio.sleep(random.uniform(1, 6))
            for task in await self._tasks():
                if random.random() < 0.5:
                    await self._answer_twice(task)

    async def _tasks(self, of: str = "Approval") -> list[str]:
        rows = await self._world.database.tasks(TaskFilter(), 100)
        return [str(row) for row in rows if row.workflow == of]

    async def _petitioners(self) -> None:
        """Answer for another instance, with what cannot be decided on, and well; skip what could not be."""
        if not dict(self._plan.cast)["petition"]:
            return
        random = self._plan.random("petitioners")
        while not self._world.peace:
            await asyncio.sleep(random.uniform(0.5, 3))
            self._look_at_breakers()
            await self._skip_doubts()
            for task in await self._tasks("Petition"):
                await self._answer_wrongly(task)
                wrong, petition = random.random() < 0.5, task.split("/")[1]
                kind = petitions.Doubt if wrong else petitions.Grant
                await self._answer(task, kind(petition, "ann"), "ann")

    async def _answer_wrongly(self, task: str) -> None:
        """Answer with what is meant for another instance, which nobody may take."""

        async def call(app: Mainspring) -> None:
            await app.tasks.complete(task, petitions.Grant("another", "eve"), actor="eve", roles=["manager"])
            self._world.complaints.append(f"{task} was answered with what is for another instance")

        async def ask() -> None:
            await self.at(await self._node(), call)

        await self._try("answer", ask)

    async def _skip_doubts(self) -> None:
        for row in self._rows():
            if row.workflow == "Petition" and row.status == "suspended":
                await self._try("skip", lambda: self._operate(Ref(row.workflow, row.id), "skip"))  # noqa: B023

    def _look_at_breakers(self) -> None:
        for node in self._world.ready_nodes():
            runners = internals_of(node.app).engine.dispatcher.runners.by_queue if node.app else {}
            if any(runner.gate.is_open for runner in runners.values()):
                self._world.complaints.append(f"{node.party.name} holds a destination back that has not failed")

    async def _answer_twice(self, task: str) -> None:
        """Let two people answer at once, differently."""
        paper = task.split("/")[1]
        await asyncio.gather(
            self._answer(task, workflows.Approve(paper, "ann"), "ann"),
            self._answer(task, workflows.Refuse(paper, "bob"), "bob"),
        )

    async def _answer(self, task: str, answer: Any, actor: str) -> None:
        async def call(app: Mainspring) -> Outcome:
            told = await app.tasks.complete(task, answer, actor=actor, roles=["manager"])
            message = told.message
            return Outcome(task, told.first, told.answered_by, f"{told.answer} {getattr(message, 'by', None)}")

        await self._try("answer", lambda: self._told_outcome(call))

    async def _told_outcome(self, call: Callable[[Mainspring], Awaitable[Outcome]]) -> None:
        outcome = await self.at(await self._node(), call)
        self._world.trace.line("people", f"are told {outcome}")
        self.outcomes.append(outcome)

    async def _try(self, what: str, work: Callable[[], Awaitable[Any]]) -> None:
        """Do what may be refused, or get no answer."""
        try:
            await work()
        except (OperationError, TaskRefusedError, StoreError, TimeoutError, MainspringError) as error:
            self._world.trace.line("outside", f"{what}: {type(error).__name__}: {error}")

    # ---- operators

    async def _operators(self) -> None:
        if not self._world.active("operator"):
            return
        random = self._plan.random("operator")
        while not self._world.peace:
            await asyncio.sleep(random.uniform(0.2, 6))
            rows = [row for row in self._rows() if row.workflow in OPERATED]
            if not rows:
                continue
            row = random.choice(rows)
            what = random.choice(("suspend", "suspend", "resume", "cancel", "terminate", "letters"))
            if what in ("cancel", "terminate") and random.random() < 0.7:
                continue
            self._world.trace.fault("operator", "operator", f"{what} {row.workflow}/{row.id}")
            self.operated.add(f"{row.workflow}/{row.id}")
            if what == "letters":
                await self._try(what, self._retry_letters)
            else:
                await self._try(what, lambda: self._operate(Ref(row.workflow, row.id), what))  # noqa: B023

    async def _operate(self, ref: Ref, what: str) -> None:
        node = await self._node()
        await self.at(node, lambda app: getattr(app.instance_at(str(ref)), what)(actor="olga"))

    async def _retry_letters(self) -> None:
        for letter in await self._world.database.dead_letters(100):
            if letter.workflow in OPERATED:
                node = await self._node()
                again = lambda app: app.retry_dead_letter(letter.id, actor="olga")  # noqa: B023, E731
                await self._try("retry", lambda: self.at(node, again))  # noqa: B023

    async def _archivists(self) -> None:
        if not self._world.active("purge"):
            return
        random = self._plan.random("purge")
        while not self._world.peace:
            await asyncio.sleep(random.uniform(0.5, 8))
            age = timedelta(seconds=random.choice((0, 0, 2)))
            for workflow in PURGED:
                await self._try("purge", lambda: self._purge(workflow, age))  # noqa: B023

    async def _purge(self, workflow: str, age: timedelta) -> None:
        report = await self.at(await self._node(), lambda app: app.purge(older_than=age, workflow=workflow))
        if report.instances:
            self._world.trace.fault("purge", "archivist", f"{report.instances} of {workflow} are purged")

    async def _pausers(self) -> None:
        if not self._world.active("paused"):
            return
        random = self._plan.random("paused")
        while not self._world.peace:
            await asyncio.sleep(random.uniform(0.2, 8))
            choice, pauses = random.random(), random.random() < 0.6
            await self._try("pauses", lambda: self._pause(choice, pauses))  # noqa: B023

    async def _pause(self, choice: float, pauses: bool) -> None:
        async def act(app: Mainspring) -> str:
            there = [f"{kind}:{name}" for kind, name in app.pauses.pausable()]
            what = there[int(choice * len(there))]
            await (app.pauses.pause(what, actor="olga") if pauses else app.pauses.resume(what, actor="olga"))
            return what

        what = await self.at(await self._node(), act)
        self._world.trace.fault("paused", "operator", f"{what} is {'paused' if pauses else 'resumed'}")

    async def _resume_all(self) -> None:
        async def act(app: Mainspring) -> None:
            for pause in await pauses_of(internals_of(app).engine.store):
                await app.pauses.resume(pause.what, actor="olga")

        await self.at(await self._node(), act)

    def _rows(self) -> list[InstanceRow]:
        return list(self._world.database.rows.values())

    # ---- the end

    async def settle(self) -> None:
        """Let people and operators finish what only they can."""
        if self._world.plan.faults & {"paused"}:
            await self._try("pauses", self._resume_all)
        await self._skip_doubts()
        for task in await self._tasks("Petition"):
            await self._answer(task, petitions.Grant(task.split("/")[1], "ann"), "ann")
        for row in self._rows():
            if row.status == "suspended":
                await self._try("resume", lambda: self._operate(Ref(row.workflow, row.id), "resume"))  # noqa: B023
        if self.operated:
            await self._try("letters", self._retry_letters)
        for task in await self._tasks():
            await self._answer_twice(task)

    def open(self) -> list[str]:
        """Return the instances that have not come to their end."""
        rows = [row for row in self._rows() if row.workflow in ENDING and row.status not in ENDED]
        return [f"{row.workflow}/{row.id} is {row.status} in {row.state}: {row.error}" for row in rows]

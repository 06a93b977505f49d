"""The drive: send, kill the worker in the middle, send on, start another, and see that everything came out right."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from examples.demo.app import DATABASE, EFFECTS, app_of, read_effects
from examples.demo.check import Click, Feed, Verdict, check, read_feed
from examples.demo.page import BOLD, DIM, Page, counted
from examples.demo.scenes import Answer, Line, Scene, openings, scenes
from examples.demo.screen import PlainScreen, Progress, screen
from mainspring import Mainspring, Task
from mainspring.app.internals import internals_of
from mainspring.core.story import Entry
from mainspring.errors import TaskRefusedError
from mainspring.port.records import Ref
from mainspring.views import Stats

ROOT: Final = Path(__file__).parent.parent.parent
SENDERS: Final = 16
LOOK_SECONDS: Final = 0.05
# Far above what it takes on a slow machine: a demo that hangs must end and say so.
PATIENCE_SECONDS: Final = 120.0


@dataclass
class Drive:
    """One run in one folder."""

    folder: Path
    app: Mainspring
    screen: PlainScreen
    to_end: int
    to_wait: int
    told: dict[str, str] = field(default_factory=dict[str, str])
    clicks: list[Click] = field(default_factory=list["Click"])
    killed_us: int = 0
    workers: int = 0

    # ---- the client

    async def send(self, batch: Iterable[Scene]) -> None:
        """Send scenes, some at a time; the lines of each in order. What is acknowledged is remembered."""
        left = iter(batch)

        async def sender() -> None:
            for scene in left:
                instance = ""
                for line in scene.lines:
                    if isinstance(line, Answer):
                        await self.answer(line, instance)
                    else:
                        instance = await self.say(line)

        await asyncio.gather(*(sender() for _ in range(SENDERS)))

    async def say(self, line: Line) -> str:
        """Send or publish a message, and return the instance that has it."""
        id = f"m-{len(self.told) + 1}"
        self.told[id] = ""
        if line.published:
            receipt = (await self.app.publish(line.message, id=id, actor=line.actor))[0]
        else:
            receipt = await self.app.send(line.message, id=id, actor=line.actor)
        self.told[id] = str(receipt)
        return str(receipt)

    async def answer(self, answer: Answer, instance: str) -> None:
        """Find the open task of an instance as somebody who may answer it, and let people click at the same moment."""
        task = await open_task(self.app, instance, None if answer.refused else answer)
        clicks = await asyncio.gather(*(self.click(task.id, answer, person) for person in answer.people))
        self.clicks += clicks
        if not answer.refused:
            self.told[f"{task.id}/answer"] = instance

    async def click(self, task: str, answer: Answer, person: str) -> Click:
        """Answer a task as a person, and return what they were told."""
        roles = () if answer.role is None else (answer.role,)
        try:
            outcome = await self.app.tasks.complete(task, answer.message, actor=person, roles=roles)
        except TaskRefusedError as refused:
            return Click(task, person, not answer.refused, refused=refused.reason)
        return Click(task, person, not answer.refused, outcome.first, outcome.answered_by)

    async def until_ended(self, count: int) -> None:
        """Wait until so many have ended."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await self._look()).ended < count:  # noqa: ASYNC110  another process makes it come true
                await asyncio.sleep(LOOK_SECONDS)

    async def until_quiet(self) -> None:
        """Wait until nothing is owed and nothing waits for its turn; timers may."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (progress := await self._look()).owed or progress.ended < self.to_end:  # noqa: ASYNC110  as above
                await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> Progress:
        stats = await self.app.stats()
        ended, going = ended_of(stats), stats.instances.get("running", 0)
        progress = Progress(ended, self.to_end, going, stats.outbox + stats.inbox)
        self.screen.show(progress)
        return progress

    # ---- the worker

    def start_worker(self) -> subprocess.Popen[bytes]:
        self.workers += 1
        process = subprocess.Popen([sys.executable, "-m", "examples.demo.worker", str(self.folder)], cwd=ROOT)  # noqa: S603  our own
        self.screen.note(f"worker {self.workers} is started, process {process.pid}")
        return process

    async def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """SIGKILL: no goodbye, no cleaning up."""
        worker.kill()
        worker.wait()
        self.killed_us = time.time_ns() // 1_000
        stats = await self.app.stats()
        owed = counted(stats.outbox + stats.inbox, "command or input is", "commands and inputs are")
        self.screen.note(f"worker {self.workers} is killed with SIGKILL; {owed} left lying", BOLD)


async def open_task(app: Mainspring, instance: str, seen_by: Answer | None) -> Task:
    """Return the task of an instance, from the list that a person sees, or an operator."""
    workflow = instance.partition("/")[0]
    role, person = (seen_by.role or (), seen_by.people[0]) if seen_by else ((), None)
    after = None
    while page := await app.tasks.list(role=role, person=person, workflow=workflow, after=after):
        for task in page:
            if f"{task.workflow}/{task.instance}" == instance:
                return task
        after = page[-1].id
    raise LookupError(f"Nobody is asked anything by {instance}.")


def ended_of(stats: Stats) -> int:
    """Return how many instances have ended, well or badly."""
    return sum(
        count for status, count in stats.instances.items() if status not in ("running", "suspended", "compensating")
    )


async def demo(folder: Path, instances: int, page: Page) -> int:
    """Run all of it, tell what happened, and return the exit code: 0 if nothing was lost and nothing doubled."""
    all_scenes = list(scenes(instances))
    opening = openings()
    to_end = sum(scene.ends for scene in all_scenes)
    to_wait = len(all_scenes) + len(opening) - to_end
    drive = Drive(folder, app_of(folder), screen(page), to_end, to_wait)
    await drive.app.start(work=False)
    page.say(f"{counted(instances, 'instance', 'instances')} of eight examples, on {folder / DATABASE}", BOLD)
    started = time.monotonic()
    worker: subprocess.Popen[bytes] | None = None
    try:
        with drive.screen.live():
            worker = drive.start_worker()
            await drive.send(opening)
            half = (len(all_scenes) + 1) // 2
            await drive.send(all_scenes[:half])
            # In the middle: some have ended, some are under way, some are with a handler at this very moment.
            # Those that are sent last see to that, should this process have been held up while the worker went on.
            await drive.until_ended(sum(scene.ends for scene in all_scenes[:half]) // 2)
            await drive.send(all_scenes[half : half + SENDERS])
            await drive.kill(worker)
            meanwhile = all_scenes[half + SENDERS :]
            await drive.send(meanwhile)
            drive.screen.note(f"{len(meanwhile)} more are sent meanwhile; each is durable when send returns")
            worker = drive.start_worker()
            await drive.until_quiet()
            seconds = time.monotonic() - started
        return await _tell(drive, page, seconds)
    finally:
        if worker is not None and worker.poll() is None:
            worker.terminate()
            worker.wait()
        await drive.app.stop()


async def _tell(drive: Drive, page: Page, seconds: float) -> int:
    store = internals_of(drive.app).engine.store
    feed, stats = await read_feed(store), await drive.app.stats()
    letters = await store.dead_letters(1_000, 0)
    # The inbox is empty when all is quiet; should it not be, what waits there is under way and not lost.
    refs = [Ref(*instance.split("/", 1)) for instance in set(drive.told.values())]
    waiting = [row for ref in refs for row in await store.inbox(ref, 1_000)]
    handled = frozenset(internals_of(drive.app).registry.handlers)
    verdict = check(drive.told, feed, waiting, letters, read_effects(drive.folder / EFFECTS), handled, drive.clicks)
    page.write()
    _examples(page, feed, drive.app)
    page.write()
    steps = sum(row.event in ("InitiatedBy", "Received") for _, row in feed)
    page.say(
        f"{len(feed):,} events in {steps:,} steps, {verdict.commands:,} commands carried out, in {seconds:.1f} s "
        f"with a kill in the middle: {steps / seconds:,.0f} steps/s"
    )
    await _story(drive, page, feed)
    return _verdict(drive, page, verdict, stats)


def _examples(page: Page, feed: Feed, app: Mainspring) -> None:
    """Write a line for each workflow: how many ended how, and how many wait."""
    ends = {"Completed": "completed", "Failed": "failed"}
    status: dict[Ref, str] = {}
    for ref, row in feed:
        status[ref] = ends.get(row.event, status.get(ref, "waiting"))
    page.write(f"{'workflow':<18}{'completed':>10}{'failed':>8}{'waiting':>9}", DIM)
    for name in internals_of(app).registry.workflows:
        counts = Counter(end for ref, end in status.items() if ref.workflow == name)
        if counts:
            page.write(f"{name:<18}{counts['completed']:>10}{counts['failed']:>8}{counts['waiting']:>9}")


async def _story(drive: Drive, page: Page, feed: Feed) -> None:
    """Write the stream of an instance that lived through the kill, with the place where that was."""
    times: dict[Ref, list[int]] = {}
    for ref, row in feed:
        times.setdefault(ref, []).append(row.time_us)
    ended = {ref for ref, row in feed if row.event in ("Completed", "Failed")}
    survivors = [ref for ref in ended if times[ref][0] < drive.killed_us < times[ref][-1]]
    # An order has the most to tell; and the more of it there is on both sides, the better it shows.
    ref = max(
        survivors or ended, key=lambda ref: (ref.workflow == "OrderProcessing", _split(times[ref], drive.killed_us))
    )
    entries = await drive.app.instance_at(str(ref)).stream()
    page.write()
    page.write(f"{ref}, which {'lived through it' if survivors else 'is one of them'}:", BOLD)
    page.stream(entries, _mark(entries, drive.killed_us) if survivors else None)


def _split(times: list[int], at: int) -> tuple[int, int]:
    before = sum(time < at for time in times)
    return min(before, len(times) - before), len(times)


def _mark(entries: list[Entry], killed_us: int) -> dict[int, str]:
    before = [entry.position for entry in entries if entry.time and entry.time.timestamp() * 1e6 < killed_us]
    return {max(before): "          ✗ the worker is killed, another takes over"}


def _clicks(clicks: list[Click]) -> str:
    won, refused = sum(click.first for click in clicks), sum(click.refused != "" for click in clicks)
    return (
        f"people answered {counted(won, 'task', 'tasks')}; {counted(len(clicks) - won - refused, 'click', 'clicks')} "
        f"came second and got the first one's outcome, {refused} by a document's own maker "
        f"{'was' if refused == 1 else 'were'} refused"
    )


def _verdict(drive: Drive, page: Page, verdict: Verdict, stats: Stats) -> int:
    page.write()
    again = counted(verdict.called_again, "call was", "calls were")
    page.say(f"{again} lost in the kill and made again, under the same idempotency key")
    page.say(_clicks(drive.clicks))
    going = stats.instances.get("running", 0)
    expected = going == drive.to_wait and ended_of(stats) == drive.to_end
    waits = counted(going, "still waits", "still wait")
    page.say(f"{waits} for a person or a timer, as {'it' if going == 1 else 'they'} should")
    style = BOLD if verdict.good and expected else ""
    page.say(
        f"{len(verdict.lost)} lost, {len(verdict.doubled)} doubled, of {verdict.inputs:,} inputs and "
        f"{verdict.commands:,} commands: checked against the database and the handlers' own file",
        style,
    )
    for what in (*verdict.lost, *verdict.doubled):
        page.write(f"  {what}")
    if not expected:
        page.say(f"{ended_of(stats)} ended and {going} wait; it should be {drive.to_end} and {drive.to_wait}")
    return 0 if verdict.good and expected else 1

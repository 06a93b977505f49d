"""Attempts that failed, over HTTP: lines of the log, in the page of what was sent, and redacted like other errors."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mainspring import Context, Mainspring
from mainspring.analysis.export.redaction import Redaction
from mainspring.analysis.export.viewed_store import viewed
from mainspring.app.internals import internals_of
from mainspring.port.attempts import Attempt
from mainspring.port.records import EventRow, Ref, Unit
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.edges.web.support import served
from tests.engine.jobs import QUICK, Done, Job, Start, Work, job
from tests.support.running import run


def refusing(folder: Path) -> Mainspring:
    async def work(command: Work, context: Context) -> Done:
        if context.attempt < 3:
            raise ConnectionError("4111 was refused")
        return Done(command.id, command.part)

    return job(Mainspring(f"sqlite:///{folder / 'web.db'}"), work, retry=QUICK)


@pytest.mark.parametrize(
    ("redact", "told"), [((), "ConnectionError: 4111 was refused"), (("part",), "ConnectionError")]
)
def test_the_log_has_attempts_that_failed(tmp_path: Path, redact: tuple[str, ...], told: str) -> None:
    async def main() -> None:
        app = refusing(tmp_path)
        async with served(app, redact=redact) as client:
            await (await app.send(Start("j-1"))).result()
            (worker,) = await internals_of(app).engine.store.workers()
            log: dict[str, Any] = (await client.get("/api/log/Job/j-1")).json()
            lines = [line for line in log["items"] if line["what"] == "Attempted"]
            assert [(line["command"], line["attempt"], line["actor"], line["about"]) for line in lines] == [
                ("Work", 1, worker.name, told),
                ("Work", 2, worker.name, told),
            ]
            assert {line["position"] for line in lines} == {3}
            assert all(line["duration_seconds"] >= 0 and line["time"] for line in lines)

    run(main)


def test_an_attempt_is_in_the_page_of_what_was_sent(tmp_path: Path) -> None:
    async def main() -> None:
        app = refusing(tmp_path)
        async with served(app) as client:
            await (await app.send(Start("j-1", 2))).result()
            seen: list[tuple[int, str]] = []
            after: int | None = 0
            while after is not None:
                page: dict[str, Any] = (await client.get(f"/api/log/Job/j-1?limit=1&after={after}")).json()
                seen += [(line["position"], line["what"]) for line in page["items"]]
                after = page["next"]
            whole = (await client.get("/api/log/Job/j-1")).json()["items"]
            assert seen == [(line["position"], line["what"]) for line in whole]
            assert [line for line in seen if line[1] == "Attempted"] == [
                (version, "Attempted") for version in (3, 3, 4, 4)
            ]
            log = await app.instance(Job, "j-1").log()
            assert [(line.position, line.what) for line in log] == seen

    run(main)


def test_whoever_may_not_see_errors_sees_kinds_of_them_in_attempts() -> None:
    async def main() -> None:
        store = MemoryStore(VirtualClock())
        await store.commit(0, [Unit("Job", "j-1", expected_version=0, events=(EventRow(1, "Began", 0),))])
        made = Attempt(1, 3, 1, "host:4711", 1, 2, "ConnectionError: 4111 was refused")
        await store.commit(0, [Unit("Job", "j-1", attempts=(made,))])
        (seen,) = await viewed(store, Redaction(payloads=True, fields=["card"])).attempts(Ref("Job", "j-1"), 10)
        assert seen == replace(made, error="ConnectionError")

    run(main)

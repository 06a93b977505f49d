"""How commands are retried may be said of a workflow, for all that its instances send."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Context, Mainspring, Retry
from mainspring.errors import WiringError
from tests.engine.jobs import Done, Job, Start, Work
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

QUICK = timedelta(microseconds=1)


class Errand(Job):
    name = "Errand"


def test_a_workflows_own_retry_holds_for_what_it_sends_and_for_nothing_else(make_app: MakeApp) -> None:
    attempts: Counter[str] = Counter()

    async def work(command: Work) -> Done:
        attempts[command.id] += 1
        raise ConnectionError("refused")

    async def main() -> None:
        app = make_app()
        app.add(Job(), retry=Retry(max_attempts=4, first=QUICK, cap=QUICK))
        app.add(Errand())
        app.handler(retry=Retry(max_attempts=2, first=QUICK, cap=QUICK))(work)
        async with app:
            for workflow in (Job, Errand):
                await app.send(Start(workflow.__name__), workflow=workflow)
            await until(lambda: suspended(app))

    async def suspended(app: Mainspring) -> bool:
        return [row.status for row in await app.instances()] == ["suspended"] * 2

    run(main)
    assert attempts == {"Job": 4, "Errand": 2}


def test_its_commands_wait_between_attempts_as_the_workflow_says_and_not_as_their_handler(make_app: MakeApp) -> None:
    attempts: list[int] = []
    hour = timedelta(hours=1)

    async def work(command: Work, context: Context) -> Done:
        attempts.append(context.attempt)
        if len(attempts) < 3:
            raise ConnectionError("refused")
        return Done(command.id, command.part)

    async def main() -> None:
        app = make_app()
        app.add(Job(), retry=Retry(first=QUICK, cap=QUICK))
        app.handler(retry=Retry(first=hour, minimum=hour, cap=hour))(work)
        async with app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert attempts == [1, 2, 3]


def test_what_is_no_retry_is_refused_where_it_is_written() -> None:
    wrong: Any = 3
    with pytest.raises(WiringError, match=r"app\.add got retry=3.*Use a Retry"):
        Mainspring("memory://").add(Job(), retry=wrong)

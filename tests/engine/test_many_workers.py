"""Many workers on one database: each has its share and no more, nobody steps out of turn, the dead are relieved."""

from collections.abc import Sequence
from typing import Any

import pytest

from mainspring.errors import StoreError, StoreUnreachableError
from mainspring.port.records import Loaded, Ref
from tests.engine.conftest import MakeApp, run, until
from tests.engine.jobs import Done, Job, Start, Work, job

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
        kind: Any = type(sender.engine.store)
        await sender.stop()
        load, refusals = kind.load, [trouble] * 2

        async def refuses(store: Any, refs: Sequence[Ref]) -> list[Loaded | None]:
            if refusals:
                raise refusals.pop()
            return await load(store, refs)

        monkeypatch.setattr("mainspring.engine.loader.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.01)
        monkeypatch.setattr(kind, "load", refuses)
        async with job(make_app(), work) as app:
            await until(lambda: not refusals)
            await app.instance(Job, "j-1").result()
            assert (await app.instance(Job, "j-1").row()).status == "completed"

    run(main)

"""`python -m tests.proof.golden.reading URL`: write all streams and the states that they fold to, as JSON.

Like the workload it runs with the sources of any commit.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.port.records import InstanceFilter, Ref
from tests.proof.golden.golden_app import Hands, shop, workflows

MOST = 10_000


async def read(app: Mainspring) -> dict[str, Any]:
    """Return each instance by its identity: status, version, state, and the rows of its stream."""
    store = internals_of(app).engine.store
    found: dict[str, Any] = {}
    for workflow in workflows():
        for row in await store.instances(InstanceFilter(workflow=workflow.__name__), MOST):
            instance = app.instance(workflow, row.id)
            state = await instance.state()
            found[str(instance)] = {
                "status": row.status,
                "version": row.version,
                "state": [type(state).__name__, msgspec.json.decode(msgspec.json.encode(state))],
                "stream": [_fields(event) for event in await store.stream(Ref(row.workflow, row.id), 0, MOST)],
            }
    return found


def _fields(event: Any) -> dict[str, Any]:
    """Return what a row says; bodies as the text that they are."""
    values = {name: getattr(event, name) for name in event.__struct_fields__}
    return {
        name: value.decode() if isinstance(value, bytes) else value
        for name, value in values.items()
        if value is not None
    }


async def main(url: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        app = shop(url, Hands(Path(folder) / "none"))
        await app.start(work=False)
        try:
            sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(await read(app)), indent=1))
        finally:
            await app.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

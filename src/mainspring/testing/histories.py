"""Golden histories: real streams, kept in a file, against which every change of a workflow is held."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mainspring.app import Mainspring
from mainspring.app.given import checked_limit
from mainspring.app.histories import History, held, kept_histories, read_histories, write_histories
from mainspring.app.internals import internals_of
from mainspring.core.definition import definition_of
from mainspring.core.workflow import Workflow
from mainspring.engine.registry import is_internal
from mainspring.errors import WiringError
from mainspring.port.records import InstanceFilter

INSTANCES: Final = 100
"""How many instances are kept of each workflow, unless said otherwise."""


class HistoryChanged(AssertionError):  # noqa: N818  it names what has happened
    """A workflow decides, or folds, otherwise than when a history was kept. The message shows the first difference."""


async def save_histories(
    app: Mainspring,
    path: Path | str,
    *,
    workflow: type[Workflow[Any, Any, Any]] | Workflow[Any, Any, Any] | None = None,
    limit: int = INSTANCES,
) -> int:
    """Keep the streams of a running app in a file, of one workflow or of all, and return how many there are.

    Of each workflow those that began first are taken, at most `limit`. What was purged or erased, or keeps no history,
    is left out. The file holds what messages say, unsealed: keep none of production that may not be in your repository.
    """
    checked_limit(limit)
    inside = internals_of(app)
    names = [name for name in inside.registry.workflows if not is_internal(name)]
    if workflow is not None:
        names = [definition_of(workflow if isinstance(workflow, type) else type(workflow)).name]
        if names[0] not in inside.registry.workflows:
            raise WiringError(f"{names[0]} is not part of this app", f"app.add({names[0]}()) first.")
    kept: list[History] = []
    for name in names:
        rows = await inside.engine.store.instances(InstanceFilter(workflow=name), limit)
        kept += [history async for history in kept_histories(inside.engine.store, inside.registry, rows)]
    write_histories(Path(path), kept)
    return len(kept)


def replay_histories(app: Mainspring, path: Path | str) -> int:
    """Decide and fold kept histories once more, with the workflows of an app, and return how many inputs there were.

    The app need not run. Raises HistoryChanged where a decision or a state is not what it was.
    """
    __tracebackhide__ = True
    inputs = 0
    for one in held(internals_of(app).registry, read_histories(path), path):
        if one.changed is not None:
            raise HistoryChanged(one.changed.text)
        inputs += one.inputs
    return inputs

"""Work that is tried alone, because it was lost with the workers that held it."""

from __future__ import annotations

from typing import Final

from mainspring.errors import DamagedRecordError
from mainspring.logs import logger
from mainspring.port.records import Ref
from mainspring.port.suspects import Alone, Suspect
from mainspring.stores.commit.rows import read_input
from mainspring.stores.sql.dialogue import Dialogue, Verbs

NO_WORKER: Final = 0
"""The owner of what is damaged: it is never delivered, and does not stop others from being claimed."""

_log = logger(__name__)


class WorkVerbs(Verbs):
    """The verbs of work that both write alike."""

    async def claim_alone(self, worker: int, suspect: Suspect | None) -> Alone | None:
        return await self.in_transaction(lambda _now_us: self._claim_alone(worker, suspect))

    def _claim_alone(self, worker: int, suspect: Suspect | None) -> Dialogue[Alone | None]:
        if not (yield "hold_worker", worker):
            return None
        yield "try_alone", worker, None
        if suspect is None:
            return None
        name = self.dialect.name(Ref(suspect.workflow, suspect.instance))
        is_input = suspect.position is not None
        found = yield ("input_alone", *name, suspect.position) if is_input else ("output_alone", *name, suspect.version)
        if not found:
            return None
        *spot, lost = found[0]
        own = "own_input" if is_input else "own_output"
        owned = yield own, *spot, worker
        try:
            if is_input:
                taken = Alone(lost, input=read_input(owned[0]))
            else:
                (row,) = yield "outputs", *self.dialect.rows([spot])
                taken = Alone(lost, output=self.dialect.output(row))
        except DamagedRecordError as error:
            log_aside(error)
            yield own, *spot, NO_WORKER
            return None
        yield "try_alone", worker, str(suspect.position) if is_input else "/".join(map(str, spot))
        return taken


def log_aside(error: DamagedRecordError) -> None:
    """Log a damaged record that is never delivered."""
    _log.error("set aside, restore it and free it again: %s", error)

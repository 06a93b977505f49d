"""What waits, who holds it, and what failed."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.errors import DamagedRecordError
from mainspring.logs import logger
from mainspring.port.attempts import Attempt
from mainspring.port.pages import Page
from mainspring.port.records import DeadLetter, InputRow, OutputClaim, OutputKey, Ref, Stats, Waiting
from mainspring.port.suspects import Suspect
from mainspring.port.workers import WorkerRow
from mainspring.stores.commit.rows import read_dead_letter, read_input
from mainspring.stores.sql.dialogue import Dialogue, Row, Verbs, read, read_at_one_moment

_log = logger(__name__)


class BacklogVerbs(Verbs):
    """The verbs of the backlog."""

    @read
    def inbox(self, ref: Ref, limit: int) -> Dialogue[list[InputRow]]:
        return [read_input(row) for row in (yield "inbox", *self.dialect.name(ref), limit)]

    @read_at_one_moment
    def outputs(self, ref: Ref | None, timers: bool, limit: int) -> Dialogue[list[OutputClaim]]:
        if ref is None:
            spots = yield "all_outputs", timers, limit
        else:
            spots = yield "instance_outputs", *self.dialect.name(ref), timers, limit
        rows = (yield "outputs", *self.dialect.rows(spots)) if spots else ()
        return [self.dialect.output(row) for row in rows]

    @read_at_one_moment
    def timers(self, limit: int) -> Dialogue[list[OutputClaim]]:
        spots = yield "free_timers", limit
        claims: list[OutputClaim] = []
        for row in (yield "outputs", *self.dialect.rows(spots)) if spots else ():
            try:
                claims.append(self.dialect.output(row))
            except DamagedRecordError as error:
                _log.error("left out of a list: %s", error)
        return claims

    @read
    def attempts(self, ref: Ref, limit: int) -> Dialogue[list[Attempt]]:
        return [Attempt(*row) for row in (yield "attempts", *self.dialect.name(ref), limit)]

    @read
    def waiting(self, before_us: int) -> Dialogue[list[Waiting]]:
        return [Waiting(*row) for row in (yield "waiting", before_us)]

    @read
    def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> Dialogue[list[DeadLetter]]:
        if ids is not None:
            found = yield "dead_letters_by_id", after, limit, self.dialect.values(ids)
            return [read_dead_letter(row) for row in found]
        page = Page[Row, DeadLetter](limit, read_dead_letter)
        while page.wants:
            page.take((yield "dead_letters", page.last[-1] if page.last else after, page.wants))
        return page.records

    @read
    def workers(self) -> Dialogue[list[WorkerRow]]:
        return [WorkerRow(*row) for row in (yield ("workers",))]

    @read
    def holds(self, worker: int) -> Dialogue[list[OutputKey]]:
        return [OutputKey(*row) for row in (yield "holds", worker)]

    @read
    def holds_inputs(self, worker: int) -> Dialogue[list[tuple[Ref, int]]]:
        return [(Ref(workflow, id), position) for workflow, id, position in (yield "holds_inputs", worker)]

    @read
    def suspects(self, limit: int) -> Dialogue[list[Suspect]]:
        found = yield "suspects", limit
        return [
            Suspect(workflow, id, type, version, lost, destination, bool(aside), type_version, position)
            for workflow, id, type, version, lost, destination, aside, type_version, position in found
        ]

    @read_at_one_moment
    def stats(self) -> Dialogue[Stats]:
        counts = {row[0]: row[1] for row in (yield ("status_counts",))}
        ((*depths,),) = yield "depths", self.now_us()
        return Stats(counts, *depths)

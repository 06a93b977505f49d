"""Units in, outcomes out, inside one open transaction: asked once, judged, written once."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from mainspring.port.records import Outcome
from mainspring.stores.commit.changes import Changes
from mainspring.stores.commit.facts import Known, Name, Owned
from mainspring.stores.commit.judge import Judge
from mainspring.stores.commit.questions import Questions
from mainspring.stores.sql.tasks import write_tasks
from mainspring.stores.sqlite import changes as writing
from mainspring.stores.sqlite.dialect import DIALECT
from mainspring.stores.sqlite.facts import SqliteFacts
from mainspring.stores.sqlite.statements import run_on


def commit_units(
    connection: apsw.Connection, now_us: int, units: Sequence[Owned], void: set[Name] | None = None
) -> tuple[list[Outcome], bool]:
    """Apply units in order. Return an outcome each, and whether there is unclaimed work now.

    `void` are the instances of which a unit was refused before: what follows was built on that one.
    """
    questions = Questions(units, Known)
    facts = SqliteFacts(connection, questions)
    changes: Changes[Known] = Changes(now_us)
    outcomes = Judge(questions, facts, changes, set() if void is None else void).decide()
    writing.write(connection, changes, facts)
    if questions.asked:
        run_on(connection, write_tasks(DIALECT, facts.tasks))
    return outcomes, changes.news

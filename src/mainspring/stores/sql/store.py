"""All verbs that both SQL stores write alike."""

from __future__ import annotations

from mainspring.stores.sql.backlog import BacklogVerbs
from mainspring.stores.sql.instances import InstanceVerbs
from mainspring.stores.sql.projections import ProjectionVerbs
from mainspring.stores.sql.streams import StreamVerbs
from mainspring.stores.sql.tasks import TaskVerbs
from mainspring.stores.sql.upkeep import UpkeepVerbs
from mainspring.stores.sql.work import WorkVerbs


class SqlStore(WorkVerbs, StreamVerbs, InstanceVerbs, BacklogVerbs, TaskVerbs, ProjectionVerbs, UpkeepVerbs):
    """What is left to a store: committing, claiming, workers, changes of hands, loans, and the ways to its database."""

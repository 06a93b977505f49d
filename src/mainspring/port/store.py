"""The store: the sum of its roles."""

from __future__ import annotations

from typing import Protocol

from mainspring.port.roles.backlog import Backlog
from mainspring.port.roles.instances import Instances
from mainspring.port.roles.projections import Projections
from mainspring.port.roles.streams import Streams
from mainspring.port.roles.tasks import Tasks
from mainspring.port.roles.upkeep import Upkeep
from mainspring.port.roles.work import Work
from mainspring.port.roles.workers import Workers


class Store(Work, Workers, Streams, Instances, Backlog, Tasks, Projections, Upkeep, Protocol):
    """A database that keeps streams and work. See `mainspring.stores.memory` for what each verb means, in few lines.

    >>> from mainspring.stores.memory import MemoryStore
    >>> from mainspring.testing.clock import VirtualClock
    >>> store: Store = MemoryStore(VirtualClock())
    """

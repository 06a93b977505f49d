"""The conformance suite of the store port: every store passes it, ours and those of others.

```
class TestMyStore(StoreContract):
    def make_store(self, clock, tmp_path):
        return MyStore(tmp_path / "my.db", clock)
```

pytest finds the rest. One behaviour a test, and its name is the sentence that fails. For failures that show the values,
call `pytest.register_assert_rewrite("mainspring.testing.store_contract")` before the import.
"""

from __future__ import annotations

from mainspring.testing.store_contract.attempts import AttemptTests
from mainspring.testing.store_contract.claims import ClaimTests
from mainspring.testing.store_contract.commits import CommitTests
from mainspring.testing.store_contract.dead_letters import DeadLetterTests
from mainspring.testing.store_contract.duplicates import DuplicateTests
from mainspring.testing.store_contract.durability import DurabilityTests
from mainspring.testing.store_contract.inboxes import InboxTests
from mainspring.testing.store_contract.lending import LendingTests
from mainspring.testing.store_contract.outlines import OutlineTests
from mainspring.testing.store_contract.preconditions import PreconditionTests
from mainspring.testing.store_contract.projections import ProjectionTests
from mainspring.testing.store_contract.purging import PurgingTests
from mainspring.testing.store_contract.reading import ReadingTests
from mainspring.testing.store_contract.searching import SearchTests
from mainspring.testing.store_contract.settlements import SettlementTests
from mainspring.testing.store_contract.streams import StreamTests
from mainspring.testing.store_contract.suspects import SuspectTests
from mainspring.testing.store_contract.tasks import TaskTests
from mainspring.testing.store_contract.timers import TimerTests
from mainspring.testing.store_contract.trimming import TrimmingTests
from mainspring.testing.store_contract.workers import WorkerTests

__all__ = ["StoreContract"]


class StoreContract(
    StreamTests,
    CommitTests,
    DuplicateTests,
    PreconditionTests,
    InboxTests,
    ClaimTests,
    SettlementTests,
    TimerTests,
    TaskTests,
    WorkerTests,
    SuspectTests,
    DeadLetterTests,
    AttemptTests,
    ReadingTests,
    SearchTests,
    OutlineTests,
    PurgingTests,
    ProjectionTests,
    TrimmingTests,
    LendingTests,
    DurabilityTests,
):
    """All the tests. Override `make_store`, and `durable` or `second_handle` where the store cannot do that.

    >>> from mainspring.stores.memory import MemoryStore
    >>> class TestMemoryStore(StoreContract):
    ...     durable = second_handle = False
    ...     def make_store(self, clock, tmp_path):
    ...         return MemoryStore(clock)
    """

"""The scenarios by name, in the order of their telling."""

from typing import Final

from tests.proof.crash_points.scenario import Scenario
from tests.proof.crash_points.scenarios.debts import TRANSACTION
from tests.proof.crash_points.scenarios.orders import RETRY, START, TIMER
from tests.proof.crash_points.scenarios.parcels import MIGRATION_OF_INSTANCE
from tests.proof.crash_points.scenarios.tallies import MIGRATION_OF_SCHEMA, PROJECTION, PURGE, STEP
from tests.proof.crash_points.scenarios.tasks_sagas_replies import REPLY, SAGA, TASK

SCENARIOS: Final[dict[str, Scenario]] = {
    scenario.name: scenario
    for scenario in (
        *(START, STEP, RETRY, TIMER, TRANSACTION, TASK, SAGA, REPLY, PROJECTION, PURGE),
        *(MIGRATION_OF_SCHEMA, MIGRATION_OF_INSTANCE),
    )
}

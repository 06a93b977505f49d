"""One trial of a store by the machine: so many examples of so many steps, from a seed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.proof.model.beds import Bed
from tests.proof.model.machine import machine_on

# A failure is shown as it was found: in a test run, making it smaller would take longer than all the rest.
AS_FOUND = (Phase.generate,)


def trial(bed: Bed, examples: int, steps: int, own_seed: int, phases: Iterable[Phase] = AS_FOUND) -> dict[str, int]:
    """Try a bed's stores, and return how often each verb was asked; raise what the machine has found."""
    with asyncio.Runner() as runner:
        machine = machine_on(bed, runner)
        asked = settings(
            max_examples=examples,
            stateful_step_count=steps,
            phases=tuple(phases),
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        )
        try:
            run_state_machine_as_test(seed(own_seed)(machine), settings=asked)
        finally:
            runner.run(bed.leave())
        return machine.steps

"""Mistakes in the engine."""

from __future__ import annotations

from typing import Final

from tests.mutants.mistake import Mistake

# The third store is the slowest, and these mistakes are not about it.
_KEYWORD: Final = "not postgres"
_CLAIMED_ONCE: Final = "test_an_input_that_cannot_be_read_is_claimed_once_and_left_from_then_on"

ENGINE: Final = (
    Mistake(
        "a claim that came back full is not followed by another",
        "engine/claims.py",
        "more = len(claims.outputs) >= limit or len(claims.inputs) >= limit",
        "more = len(claims.outputs) > limit or len(claims.inputs) > limit",
        ("tests/engine/test_bounds.py::test_a_claim_that_comes_back_full_is_followed_by_another_at_once",),
        _KEYWORD,
    ),
    Mistake(
        "a timer that is due earlier than the next one does not move the wake-up",
        "engine/claims.py",
        "elif self._timer_us is None or due_us < self._timer_us:",
        "elif self._timer_us is None:",
        ("tests/engine/test_timers.py",),
        _KEYWORD,
    ),
    Mistake(
        "an input overtakes the one before it whose type this worker does not know",
        "engine/claims.py",
        "if ref in strange or not self._registry.codec.reads(row.type, row.type_version):",
        "if not self._registry.codec.reads(row.type, row.type_version):",
        ("tests/engine/test_faults.py::test_what_stands_behind_an_input_of_an_unknown_type_is_given_back_with_it",),
        _KEYWORD,
    ),
    Mistake(
        "an input of a version that this worker does not know is taken for one that it can read",
        "engine/claims.py",
        "if ref in strange or not self._registry.codec.reads(row.type, row.type_version):",
        "if ref in strange or not self._registry.codec.knows(row.type):",
        ("tests/engine/test_rolling.py::" + _CLAIMED_ONCE,),
        _KEYWORD,
    ),
    Mistake(
        "what a worker cannot read is claimed again and again",
        "engine/claims.py",
        "claims = await self._store.claim(worker, wide, workflows, limit, self.strangers.leaves())",
        "claims = await self._store.claim(worker, wide, workflows, limit)",
        ("tests/engine/test_rolling.py::" + _CLAIMED_ONCE,),
        _KEYWORD,
    ),
    Mistake(
        "what one of the workers that run does not take is told as if none did",
        "engine/unread.py",
        "return any(one.takes(claim.destination, claim.type, claim.type_version) for one in self.known)",
        "return all(one.takes(claim.destination, claim.type, claim.type_version) for one in self.known)",
        ("tests/engine/test_unread.py::test_what_another_running_worker_takes_is_not_told",),
        _KEYWORD,
    ),
    Mistake(
        "what waits for another try of its commit is not counted as in hand",
        "engine/committer.py",
        "        yield from self._again.values()\n",
        "",
        ("tests/engine/test_faults.py",),
        _KEYWORD,
    ),
    Mistake(
        "a retry forgets how many attempts were made",
        "engine/dispatch.py",
        "self.retry(job.claim, attempts, delay_us, job.own(error_text(error)))",
        "self.retry(job.claim, job.claim.attempts, delay_us, job.own(error_text(error)))",
        ("tests/engine/test_handlers.py",),
        _KEYWORD,
    ),
    Mistake(
        "outputs that are promised to a handler are not counted against its room",
        "engine/dispatch.py",
        "room = min(OUTPUTS_IN_HAND, runner.pace.most) - self._promised[queue] - runner.in_hand",
        "room = min(OUTPUTS_IN_HAND, runner.pace.most) - runner.in_hand",
        ("tests/engine/test_bounds.py",),
        _KEYWORD,
    ),
    Mistake(
        "a result is remembered for a thousandth of the time",
        "engine/dispatch.py",
        "expires_us = min(self._store.now_us() + microseconds(handler.options.remember), NEVER_US)",
        "expires_us = min(self._store.now_us() + microseconds(handler.options.remember) // 1_000, NEVER_US)",
        ("tests/engine/test_results.py",),
        _KEYWORD,
    ),
    Mistake(
        "every beat of a handler adds to its time, instead of beginning it anew",
        "engine/runners.py",
        "job.deadline_us = self._now_us() + self.handler.timeout_us",
        "job.deadline_us += self.handler.timeout_us",
        ("tests/engine/test_handlers.py",),
        _KEYWORD,
    ),
    Mistake(
        "when a saga is cancelled, its compensations in hand are dropped too",
        "engine/runners.py",
        'return is_armed(job.claim) if which == "armed" else undone_by(job.claim) is None',
        'return is_armed(job.claim) if which == "armed" else True',
        ("tests/engine/coordination/test_saga_operators.py",),
        _KEYWORD,
    ),
    Mistake(
        "a handler that asks is not told that it was cancelled",
        "engine/runners.py",
        "                job.context.cancelled = True\n",
        "                job.context.cancelled = False\n",
        ("tests/engine/test_handlers.py",),
        _KEYWORD,
    ),
    Mistake(
        "of more than a thousand missed times, a schedule makes up for a thousand",
        "engine/recurring.py",
        "_next_tick(calendar, era, due[-1], due[-1])",
        "_next_tick(calendar, era, due[-1], now)",
        ("tests/engine/coordination/test_schedules.py",),
        _KEYWORD,
    ),
    Mistake(
        "a paused schedule that is declared differently is active again",
        "engine/recurring.py",
        "return Paused(calendar, era + 1) if isinstance(state, Paused) else Active(calendar, era + 1)",
        "return Active(calendar, era + 1)",
        ("tests/engine/coordination/test_schedules.py",),
        _KEYWORD,
    ),
    Mistake(
        "a snapshot of before a reset is trusted after it",
        "engine/loader.py",
        "if trusts(entry, loaded.snapshot) and not any(branches(row) for row in loaded.events):",
        "if trusts(entry, loaded.snapshot):",
        ("tests/engine/test_resetting.py",),
        _KEYWORD,
    ),
    Mistake(
        "what is remembered of a suspended instance is kept, though others may resume it",
        "engine/stepper.py",
        'elif lane.ended or lane.status == "suspended" or lane.elsewhere:',
        "elif lane.ended or lane.elsewhere:",
        ("tests/engine/test_stepping.py",),
        _KEYWORD,
    ),
    Mistake(
        "an output whose message was taken before is not settled",
        "engine/repeats.py",
        "if pending.settles is not None or pending.position is not None:",
        "if pending.position is not None:",
        ("tests/engine/test_cooperation.py",),
        _KEYWORD,
    ),
    Mistake(
        "a long attempt hears nothing when another process terminates its instance",
        "engine/engine.py",
        'loaded.row.status in ("cancelled", "terminated", "compensating")',
        'loaded.row.status in ("cancelled", "compensating")',
        ("tests/engine/test_handlers.py",),
        _KEYWORD,
    ),
    Mistake(
        "a projection that stopped in the middle of a piece says that it has folded all of it",
        "engine/folding.py",
        "            if reached != reaches:\n"
        "                await loan.advance(Advance(move.name, move.generation, reaches, reached))\n",
        "",
        (
            "tests/engine/coordination/test_own_tables.py::test_what_there_was_no_time_for_is_written_with_the_next_piece",
        ),
        _KEYWORD,
    ),
    Mistake(
        "the tasks of a saga that is cancelled stay open while it is undone",
        "engine/operations.py",
        'return replace(unit, cancel_all="unclaimed", tasks=TaskWork(close_all=True))',
        'return replace(unit, cancel_all="unclaimed")',
        ("tests/engine/coordination/test_saga_operators.py",),
        _KEYWORD,
    ),
)

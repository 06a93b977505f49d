"""Dead letters: carried out after all, corrected, or removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from mainspring.app.given import LARGEST
from mainspring.app.undelivered import take_again
from mainspring.core.events import Resent, Sent
from mainspring.core.messages import Kind, type_of
from mainspring.engine.inputs.senders import checked_actor
from mainspring.engine.inputs.stored_input import from_dead_letter
from mainspring.engine.operations.operations import CONFLICTS
from mainspring.engine.operations.retried_letter import Since, refuse
from mainspring.engine.recording.destinations import command
from mainspring.engine.recording.stored_values import encode_context, read_context
from mainspring.errors import NoSuchInstanceError, NoSuchNameError, OperationError
from mainspring.errors import shown as quoted
from mainspring.port.records import ARMED, EDGE, Committed, DeadLetter, OutputRow, Ref, Unit

if TYPE_CHECKING:
    from mainspring.app.services import Edge
    from mainspring.engine.engine import Engine
    from mainspring.engine.registry import WorkflowEntry


async def retry(
    engine: Engine, edges: Mapping[str, Edge], id: int, message: Any, actor: str | None, *, force: bool = False
) -> None:
    """Carry a dead letter out after all: as it is, or with another message in its place.

    What its instance has moved on without is refused, unless it is forced.
    """
    checked_actor(actor)
    letter = await _letter(engine, id)
    if letter.workflow == EDGE:
        await take_again(edges, letter, message, actor)
        await discard(engine, id)
        return
    if letter.output is not None:
        if message is None:
            await _restore(engine, letter, actor, force=force)
        else:
            await _resend(engine, letter, message, actor, force=force)
        engine.wakeups.due_at(0)
        return
    if message is not None and letter.kind == Kind.ANSWER:
        fix = "Retry it as it is, or discard it and let the task be asked again."
        raise OperationError(f"Dead letter {id}", f"is {letter.actor}'s answer; no other person may correct it", fix)
    pending = from_dead_letter(engine.registry, letter if message is None else _edited(engine, letter, message))
    # It is removed in the commit that takes it; if it is not taken, it stays.
    if await engine.intake.answered(pending) == "duplicate":
        await discard(engine, id)  # it was sent again meanwhile, and taken


async def discard(engine: Engine, id: int) -> None:
    """Remove a dead letter for good."""
    letter = await _letter(engine, id)
    await engine.committer.commit(Unit(letter.workflow, letter.instance, discards=(id,)))


async def _letter(engine: Engine, id: int) -> DeadLetter:
    found = await engine.store.dead_letters(1, 0, [id]) if type(id) is int and 0 <= id <= LARGEST else []
    if not found:
        raise NoSuchNameError(f"Dead letter {quoted(id, 40)}", "does not exist", "List them to see which there are.")
    return found[0]


def _edited(engine: Engine, letter: DeadLetter, message: Any) -> DeadLetter:
    encoded = engine.registry.codec.encode(message)
    # A corrected message is its editor's: what it says now comes from outside.
    context = encode_context(replace(read_context(letter.context), outside=True))
    return replace(letter, type=encoded.name, type_version=encoded.version, body=encoded.body, context=context)


async def _restore(engine: Engine, letter: DeadLetter, actor: str | None, *, force: bool) -> None:
    """Let a worker carry it out, if nothing has happened to its instance since that was found to be right.

    Then its instance resumes, and not before: if the retry is refused at last, it must not have taken what waits.
    """
    since = _since(engine, letter)
    for _ in range(CONFLICTS):
        version = None if force else await refuse(engine.store, letter, since)
        await engine.operations.before_retry(letter, actor, edited=False, force=force)
        if await engine.store.restore_output(letter.id, version):
            await engine.operations.after_retry(letter, actor)
            return
        if not await engine.store.dead_letters(1, 0, [letter.id]):
            return  # another process was first
    raise _restless(Ref(letter.workflow, letter.instance))


def _since(engine: Engine, letter: DeadLetter) -> Since:
    entry = engine.registry.workflows.get(letter.workflow)
    ignores = entry is not None and any(each.definition.unknown_transition == "ignore" for each in entry.versions)
    return Since(0 if letter.output is None else letter.output.version, ignores=ignores)


async def _resend(engine: Engine, letter: DeadLetter, message: Any, actor: str | None, *, force: bool) -> None:
    """Record a corrected command in the stream of its instance, and let it be carried out.

    It is another message, so it has an id, and an idempotency key, of its own.
    """
    entry = engine.registry.workflows.get(letter.workflow)
    ref = Ref(letter.workflow, letter.instance)
    if entry is None:
        raise NoSuchInstanceError(str(ref))
    kind = cast("type[Any]", type(message))
    if kind not in entry.definition.outputs:
        problem = f"cannot become {type_of(kind).name}"
        raise OperationError(f"Dead letter {letter.id}", problem, f"Use an output of {entry.name}.")
    since = _since(engine, letter)
    if not force:
        await refuse(engine.store, letter, since)
    await engine.operations.before_retry(letter, actor, edited=True, force=force)
    compensation = await _compensation(engine, entry, letter)
    for _ in range(CONFLICTS):
        loaded = (await engine.store.load([ref]))[0]
        if loaded is None:
            raise NoSuchInstanceError(str(ref))
        # Behind the load: an earlier correction has moved the instance, or is seen here.
        await _letter(engine, letter.id)
        looked_at = None if force else await refuse(engine.store, letter, since)
        if looked_at is not None and looked_at != loaded.row.version:
            continue
        row, version = loaded.row, loaded.row.version + 1
        event = entry.recorder.row(Resent(message, compensation), version, engine.store.now_us(), actor)
        unit = Unit(
            row.workflow,
            row.id,
            key=row.key,
            expected_version=row.version,
            events=(event,),
            status=row.status,
            state=row.state,
            error=row.error,
            definition_version=row.definition_version,
            context=row.context,
            outputs=(OutputRow(version, "send", command(event), key=None if compensation is None else ARMED),),
            discards=(letter.id,),
        )
        outcome = await engine.committer.commit(unit)
        engine.stepper.lanes.forget(ref)
        if isinstance(outcome, Committed):
            await engine.operations.after_retry(letter, actor)
            return
    raise _restless(ref)


def _restless(ref: Ref) -> OperationError:
    return OperationError(str(ref), f"moved on {CONFLICTS} times meanwhile", "Suspend it first, or try again.")


async def _compensation(engine: Engine, entry: WorkflowEntry, letter: DeadLetter) -> Any:
    """Return what undoes the command in the dead letter, None if nothing does."""
    if letter.output is None:
        return None
    before = letter.output.version - 1
    for row in await engine.store.stream(Ref(letter.workflow, letter.instance), before, 1):
        event = entry.recorder.event(row)
        if isinstance(event, Sent | Resent):
            return cast("Any", event).compensate
    return None

"""A store whose bodies are sealed: between any store and the engine, which sees what it always sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, cast

from msgspec.structs import replace

from mainspring.errors import ERASED_TYPE, FaultyUnitError, LendingError, MainspringError, StoreError, told
from mainspring.errors.kinds import kind_in
from mainspring.logs import discretion, logger
from mainspring.port.attempts import Attempt
from mainspring.port.digests import same_message
from mainspring.port.loans import Connection, Loan, accepting
from mainspring.port.pages import Page
from mainspring.port.preconditions import Precondition
from mainspring.port.projections import Advance, Document
from mainspring.port.records import (
    FAN_OUT,
    NO_LEAVES,
    Claims,
    DeadLetter,
    Duplicate,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    Leaves,
    Loaded,
    Outcome,
    OutputClaim,
    Ref,
    Relayed,
    Remembered,
    Snapshot,
    Unit,
)
from mainspring.port.searches import Found
from mainspring.port.store import Store
from mainspring.port.suspects import Alone, Suspect
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow, TaskSpot
from mainspring.sealing.seals import ERASED, About, Seal, is_secret
from mainspring.stores.sealed_errors import closed_error, opened_error

PAGE: Final = 1_000

_log = logger(__name__)

R = TypeVar("R", EventRow, InputRow, DeadLetter, OutputClaim, Remembered, Snapshot, Document)


def sealed(store: Store, seal: Seal) -> Store:
    """Return a store that seals every body on its way in, and opens it on its way out.

    >>> from mainspring.sealing import Compressed
    >>> from mainspring.stores.memory import MemoryStore
    >>> from mainspring.testing.clock import VirtualClock
    >>> store = sealed(MemoryStore(VirtualClock()), Compressed())
    """
    return cast("Store", SealedStore(store, seal))


def sealed_input(row: InputRow, seal: Seal) -> InputRow:
    """Return an input as a sealed store would keep it.

    >>> from mainspring.sealing import Compressed
    >>> sealed_input(InputRow("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}"), Compressed()).body
    b'{}'
    """
    about = about_of(row.workflow, row.instance)
    try:
        return replace(row, body=seal.close(row.body, About(about.workflow, about.instance, row.type)))
    except Exception as error:
        raise _unsealed(Ref(row.workflow, row.instance), error) from error


class SealedStore:
    """Overrides the verbs in which bodies travel. All others are the store's own."""

    def __init__(self, store: Store, seal: Seal) -> None:
        self._store = store
        self._seal = seal
        self._secret = is_secret(seal)
        """Whether what errors say is sealed too, and not logged: it may quote a body."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def __str__(self) -> str:
        return str(self._store)

    async def open(self) -> None:
        if self._secret:
            discretion.ask(self)
        try:
            await self._store.open()
        except BaseException:
            discretion.release(self)
            raise

    async def close(self) -> None:
        await self._store.close()
        discretion.release(self)

    # ---- in

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        outcomes = await self._committed(worker, units)
        for place, outcome in enumerate(outcomes):
            # Under a newer key the same message has other bytes.
            if isinstance(outcome, Duplicate) and not outcome.same and await self._repeats(units[place]):
                outcomes[place] = Duplicate(same=True)
        return outcomes

    async def _committed(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        """Commit what can be sealed: whose subject or key fails is at fault alone."""
        closed: list[Unit] = []
        faults: dict[int, Exception] = {}
        void: set[Ref] = set()
        for place, unit in enumerate(units):
            ref = Ref(unit.workflow, unit.instance)
            if unit.expected_version is not None and ref in void:
                faults[place] = StoreError(str(ref), "could not be sealed before", "See the error before this one.")
                continue
            try:
                closed.append(self._closed(unit))
            except Exception as error:  # noqa: BLE001  an author's subject may fail in any way
                faults[place] = _unsealed(ref, error)
                void.add(ref)
        if not faults:
            return await self._store.commit(worker, closed)
        try:
            rest = iter(await self._store.commit(worker, closed) if closed else [])
        except FaultyUnitError as error:
            rest = iter(error.outcomes)
        raise FaultyUnitError(str(self), [faults[n] if n in faults else next(rest) for n in range(len(units))])

    async def advance(self, move: Advance) -> bool:
        documents = tuple(self._close(each, About("", each.key)) for each in move.documents)
        # A projection is nobody's: what an event of somebody's made it say could not be erased with them.
        error = kind_in(move.error) or "not told" if self._secret and move.error else move.error
        changed = documents or error != move.error
        return await self._store.advance(replace(move, documents=documents, error=error) if changed else move)

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        return _SealedLoan(await self._store.lend(worker, limit_seconds), self._closed, self._seal, self._repeats)

    def _closed(self, unit: Unit) -> Unit:
        about = about_of(unit.workflow, unit.instance)
        changes: dict[str, Any] = {}
        if unit.events:
            changes["events"] = tuple(self._close(event, about) for event in unit.events)
        if unit.accepts:
            changes["accepts"] = tuple(self._close(row, about_of(row.workflow, row.instance)) for row in unit.accepts)
        if unit.dead_letters:
            changes["dead_letters"] = tuple(
                self._close(row, about_of(row.workflow, row.instance)) for row in unit.dead_letters
            )
        if unit.remembers:
            changes["remembers"] = tuple(self._close(result, About("", result.key)) for result in unit.remembers)
        if unit.snapshot is not None:
            changes["snapshot"] = self._close(unit.snapshot, about)
        if unit.error is not None:
            changes["error"] = self._closed_error(unit.error, about)
        if unit.retries and unit.instance:
            changes["retries"] = tuple(replace(r, error=self._closed_error(r.error, about)) for r in unit.retries)
        if unit.attempts:
            changes["attempts"] = tuple(replace(a, error=self._closed_error(a.error, about)) for a in unit.attempts)
        if unit.tasks is not None and unit.tasks.opens:
            opens = tuple(replace(task, data=self._seal.close(task.data, about)) for task in unit.tasks.opens)
            changes["tasks"] = replace(unit.tasks, opens=opens)
        return replace(unit, **changes) if changes else unit

    def _close(self, record: R, about: About) -> R:
        changes: dict[str, Any] = {}
        about = About(about.workflow, about.instance, record.type)
        if record.body is not None:
            changes["body"] = self._seal.close(record.body, about)
        if isinstance(record, EventRow) and record.detail is not None:
            changes["detail"] = self._seal.close(record.detail, about)
        if isinstance(record, DeadLetter):
            changes["error"] = self._closed_error(record.error, about)
        return replace(record, **changes) if changes else record

    def _closed_error(self, text: str | None, about: About) -> str | None:
        return text if text is None or not self._secret else closed_error(text, about, self._seal)

    def _opened_error(self, stored: str | None, about: About) -> str | None:
        return None if stored is None else opened_error(stored, about, self._seal)

    async def _repeats(self, unit: Unit) -> bool:
        """Tell whether the unit's input is, opened, the one that has its id already."""
        carriers: Iterable[Any] = (*unit.events, *unit.accepts, *unit.dead_letters)
        id = unit.dedupe or (unit.accepts[0].message_id if unit.accepts else None)
        own = next((carrier for carrier in carriers if id is not None and carrier.message_id == id), None)
        if own is None:
            return False
        ref = Ref(own.workflow, own.instance) if isinstance(own, InputRow) else Ref(unit.workflow, unit.instance)
        known = await self._known(ref, str(id))
        return known is not None and same_message((known.type, known.body), (own.type, own.body))

    async def _known(self, ref: Ref, message_id: str) -> EventRow | InputRow | DeadLetter | None:
        for row in await self.inbox(ref, PAGE):
            if row.message_id == message_id:
                return row
        after = 0
        while events := await self.stream(ref, after, PAGE):
            for event in events:
                if event.message_id == message_id:
                    return event
            after = events[-1].version
        letter_id = 0
        while letters := await self.dead_letters(PAGE, letter_id):
            for letter in letters:
                if (letter.workflow, letter.instance, letter.message_id) == (ref.workflow, ref.id, message_id):
                    return letter
            letter_id = letters[-1].id
        return None

    async def relay(self, limit: int) -> Relayed:
        relayed = await self._store.relay(limit)
        letters: list[DeadLetter] = []
        for letter in self._held(relayed.letters):
            known = await self._known(Ref(letter.workflow, letter.instance), letter.message_id)
            # Under a newer key the same message has other bytes, and was taken for another.
            is_input = isinstance(known, EventRow | InputRow)
            if is_input and same_message((known.type, known.body), (letter.type, letter.body)):
                await self._discard(letter)
            else:
                letters.append(letter)
        return Relayed(relayed.count, tuple(letters))

    async def _discard(self, unwanted: DeadLetter) -> None:
        after = 0
        while letters := await self._store.dead_letters(PAGE, after):
            after = letters[-1].id
            found = [letter.id for letter in self._held(letters) if replace(letter, id=0) == unwanted]
            if found:
                await self._store.commit(0, [Unit("", "", discards=tuple(found))])
                return

    # ---- out

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NO_LEAVES
    ) -> Claims:
        claims = await self._store.claim(worker, destinations, workflows, limit, leaves)
        return Claims(self._held(claims.outputs), self._held(claims.inputs), claims.next_due_us, claims.posted)

    async def claim_alone(self, worker: int, suspect: Suspect | None) -> Alone | None:
        taken = await self._store.claim_alone(worker, suspect)
        if taken is None:
            return None
        outputs = self._held([taken.output]) if taken.output is not None else [None]
        inputs = self._held([taken.input]) if taken.input is not None else [None]
        return Alone(taken.lost, outputs[0], inputs[0])

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        found = await self._store.load(refs, most)
        return [None if loaded is None else self._loaded(loaded) for loaded in found]

    async def remembered(self, key: str) -> Remembered | None:
        found = await self._store.remembered(key)
        return None if found is None else self._open(found, About("", key))

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        about = about_of(ref.workflow, ref.id)
        return [self._open(event, about) for event in await self._store.stream(ref, after, limit)]

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        found = await self._store.feed(after, limit)
        return [(at, ref, self._open(event, about_of(ref.workflow, ref.id))) for at, ref, event in found]

    async def documents(self, projection: str, keys: Sequence[str], generation: int | None = None) -> list[Document]:
        found = await self._store.documents(projection, keys, generation)
        return [self._open(each, About("", each.key)) for each in found]

    async def list_documents(self, projection: str, prefix: str, after: str, limit: int) -> list[Document]:
        found = await self._store.list_documents(projection, prefix, after, limit)
        return [self._open(each, About("", each.key)) for each in found]

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        return [self._row(row) for row in await self._store.instances(where, limit, after)]

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        rows, behind = await self._store.search(where, limit, after, newest)
        return Found([self._row(row) for row in rows], behind)

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        return self._opened(await self._store.inbox(ref, limit))

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        found = await self._store.outputs(ref, timers, limit)
        return self._held(found) if ref is None else self._opened(found)

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        about = about_of(ref.workflow, ref.id)
        found = await self._store.attempts(ref, limit)
        return [replace(one, error=self._opened_error(one.error, about)) for one in found]

    async def timers(self, limit: int) -> list[OutputClaim]:
        return self._held(await self._store.timers(limit))

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        found = await self._store.dead_letters(limit, after, ids)
        return self._opened(found) if ids is not None else self._held(found)

    async def tasks(self, where: TaskFilter, limit: int, after: TaskSpot | None = None) -> list[TaskRow]:
        page = Page[TaskRow, TaskRow](limit, self._shown)
        while page.wants:
            page.take(await self._store.tasks(where, page.wants, after))
            if page.last is not None:
                after = (Ref(page.last.workflow, page.last.instance), page.last.version)
        return page.records

    async def task(self, ref: Ref, version: int) -> TaskRow | None:
        task = await self._store.task(ref, version)
        return None if task is None else self._shown(task)

    async def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        task = await self._store.hand(ref, version, hand)
        return self._shown(task) if isinstance(task, TaskRow) else task

    async def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        return [self._handed(task) for task in await self._store.pick(role, actor, limit)]

    def _handed(self, task: TaskRow) -> TaskRow:
        """Return a task that is in somebody's hands by now: without its data, where these cannot be opened."""
        try:
            return self._shown(task)
        except MainspringError as error:
            _log.error("cannot be opened: %s", error)
            return replace(task, data=b"{}")

    def _shown(self, task: TaskRow) -> TaskRow:
        data = self._seal.open(task.data, about_of(task.workflow, task.instance))
        return replace(task, data=b"{}" if data == ERASED else data)

    def _loaded(self, loaded: Loaded) -> Loaded:
        about = about_of(loaded.row.workflow, loaded.row.id)
        snapshot = None if loaded.snapshot is None else self._open(loaded.snapshot, about)
        return Loaded(self._row(loaded.row), snapshot, [self._open(event, about) for event in loaded.events])

    def _row(self, row: InstanceRow) -> InstanceRow:
        if row.error is None:
            return row
        return replace(row, error=self._opened_error(row.error, about_of(row.workflow, row.id)))

    def _opened(self, records: Sequence[R]) -> list[R]:
        return [self._open(each, about_of(cast("Any", each).workflow, cast("Any", each).instance)) for each in records]

    def _held(self, records: Sequence[R]) -> list[R]:
        """Open what can be opened. The rest stays as it is: each fails where it is read, and no other with it."""
        held: list[R] = []
        for record in records:
            try:
                held += self._opened((record,))
            except MainspringError as error:
                _log.error("cannot be opened: %s", error)
                held.append(record)
        return held

    def _open(self, record: R, about: About) -> R:
        changes: dict[str, Any] = {}
        about = About(about.workflow, about.instance, record.type)
        if record.body is not None:
            changes["body"] = self._seal.open(record.body, about)
            if changes["body"] == ERASED:
                # What was erased before it became a dead letter has that name already.
                changes["type"] = f"{ERASED_TYPE}{(record.type or '').removeprefix(ERASED_TYPE)}"
        if isinstance(record, EventRow | OutputClaim) and record.detail is not None:
            # An erased one says nothing, but that there was one: a compensation that nobody can read is not forgotten.
            changes["detail"] = self._seal.open(record.detail, about)
        if isinstance(record, DeadLetter | OutputClaim) and record.error is not None:
            changes["error"] = self._opened_error(record.error, about)
        return replace(record, **changes) if changes else record


class _SealedLoan:
    """A loan whose unit is sealed too."""

    def __init__(
        self, loan: Loan, close: Callable[[Unit], Unit], seal: Seal, repeats: Callable[[Unit], Awaitable[bool]]
    ) -> None:
        self._loan = loan
        self._close = close
        self._seal = seal
        self._repeats = repeats

    @property
    def connection(self) -> Connection:
        return self._loan.connection

    async def advance(self, move: Advance) -> bool:
        # It carries no documents: those are in tables of the projection's own.
        return await self._loan.advance(move)

    async def commit(self, unit: Unit) -> Outcome:
        return await self._loan.commit(self._close(unit))

    async def accept(self, rows: Sequence[InputRow], requires: Sequence[Precondition | None] = ()) -> list[Outcome]:
        outcomes = await self._loan.accept([sealed_input(row, self._seal) for row in rows], requires)
        for row, unit, outcome in zip(rows, accepting(rows), outcomes, strict=True):
            # It is rolled back by now, for under an older key it has other bytes: let nobody call it another message.
            if isinstance(outcome, Duplicate) and not outcome.same and await self._repeats(unit):
                raise LendingError(
                    f"{row.workflow}/{row.instance} has the message {row.message_id} already, under an older key, "
                    "so the transaction was undone",
                    "Begin it again without this message.",
                )
        return outcomes

    async def roll_back(self) -> None:
        await self._loan.roll_back()


def _unsealed(ref: Ref, cause: Exception) -> Exception:
    if isinstance(cause, MainspringError):
        return cause
    error = StoreError(str(ref), f"cannot be sealed ({told(cause, 200)})", "Correct the seal's `subject`, or its keys.")
    error.__cause__ = cause
    return error


def about_of(workflow: str, instance: str) -> About:
    """Return whose body it is: what a fan-out holds is of the instance that fanned out, and is erased with it."""
    if workflow == FAN_OUT:
        workflow, _, rest = instance.partition("/")
        instance = rest.rpartition("/")[0]
    return About(workflow, instance)

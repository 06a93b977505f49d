"""A store whose bodies are sealed: every one is closed on its way in, and opened on its way out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from mainspring.errors import FaultyUnitError, LendingError, StoreError
from mainspring.errors.kinds import kind_in
from mainspring.logs import discretion
from mainspring.port.attempts import Attempt
from mainspring.port.digests import same_message
from mainspring.port.loans import Connection, Loan, accepting
from mainspring.port.pages import Page
from mainspring.port.preconditions import Precondition
from mainspring.port.projections import Advance, Document
from mainspring.port.records import (
    NO_LEAVES,
    Claims,
    Conflict,
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
    Unit,
)
from mainspring.port.searches import Found
from mainspring.port.store import Store
from mainspring.port.suspects import Alone, Suspect
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow, TaskSpot
from mainspring.sealing.seals import About, Seal
from mainspring.stores.sealed.bodies import Bodies, about_of, sealed_input, unsealed
from mainspring.stores.sealed.renewals import Renewals
from mainspring.stores.wrapped import WrappedStore

T = TypeVar("T", Outcome, Outcome | Exception)


def sealed(store: Store, seal: Seal) -> Store:
    """Return a store that seals every body on its way in, and opens it on its way out.

    >>> from mainspring.sealing import Compressed
    >>> from mainspring.stores.memory import MemoryStore
    >>> from mainspring.testing.clock import VirtualClock
    >>> store = sealed(MemoryStore(VirtualClock()), Compressed())
    """
    return SealedStore(store, seal)


class SealedStore(WrappedStore):
    """Overrides the verbs in which bodies travel. All others are the store's own."""

    def __init__(self, store: Store, seal: Seal) -> None:
        super().__init__(store)
        self._seal = seal
        self.renewals = Renewals(seal)
        self._bodies = Bodies(self.renewals)
        self.era = self.renewals.era

    async def open(self) -> None:
        if self._bodies.secret:
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
            if isinstance(outcome, Duplicate) and not outcome.same and await self.repeats(units[place]):
                outcomes[place] = Duplicate(same=True)
        return outcomes

    async def _committed(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        """Commit what can be sealed: a failing subject or key fails its unit alone, erased data is a conflict."""
        closed: list[Unit] = []
        eras: list[int] = []
        kept: dict[int, Outcome | Exception] = {}
        void: dict[Ref, Outcome | Exception] = {}
        for place, unit in enumerate(units):
            ref = Ref(unit.workflow, unit.instance)
            if unit.expected_version is not None and ref in void:
                kept[place] = void[ref]
                eras.append(0)
                continue
            sealed = self._sealed(unit)
            eras.append(self.renewals.began)
            if isinstance(sealed, Unit):
                closed.append(sealed)
                continue
            kept[place] = sealed
            if isinstance(sealed, Exception):
                void[ref] = StoreError(str(ref), "could not be sealed before", "See the error before this one.")
            elif unit.expected_version is not None:
                void[ref] = Conflict("version")
        if not kept:
            return self._noted(units, await self._store.commit(worker, closed), eras)
        try:
            rest = iter(await self._store.commit(worker, closed) if closed else [])
        except FaultyUnitError as error:
            rest = iter(error.outcomes)
        outcomes = self._noted(units, [kept[n] if n in kept else next(rest) for n in range(len(units))], eras)
        told = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
        if len(told) < len(outcomes):
            raise FaultyUnitError(str(self), outcomes)
        return told

    def _sealed(self, unit: Unit) -> Unit | Conflict | Exception:
        try:
            return self.closed(unit)
        except Exception as error:  # noqa: BLE001  an author's subject may fail in any way
            return unsealed(Ref(unit.workflow, unit.instance), error)

    def closed(self, unit: Unit) -> Unit | Conflict:
        """Return a unit as it is stored, or a conflict if it was made of what is erased by now.

        It is closed first: a key that is destroyed meanwhile has closed it, and erased it, or is seen to be renewed.
        """
        self.renewals.begin()
        closed = self._bodies.close_unit(unit)
        return self.renewals.refusal(unit) or closed

    def note(self, unit: Unit, outcome: Outcome | Exception, era: int) -> None:
        """Note what came of a unit that was closed in an era."""
        self.renewals.committed(unit, outcome, era)

    def _noted(self, units: Sequence[Unit], outcomes: list[T], eras: Sequence[int]) -> list[T]:
        if self.renewals.era():
            for unit, outcome, era in zip(units, outcomes, eras, strict=True):
                self.note(unit, outcome, era)
        return outcomes

    async def advance(self, move: Advance) -> bool:
        self.renewals.begin()
        documents = tuple(self._bodies.close(each, About("", each.key)) for each in move.documents)
        if self.renewals.is_stale(move):
            return False  # it is folded anew
        # A projection belongs to no subject: what a subject's event made it say could not be erased with the subject.
        error = kind_in(move.error) or "not told" if self._bodies.secret and move.error else move.error
        changed = documents or error != move.error
        return await self._store.advance(replace(move, documents=documents, error=error) if changed else move)

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        return _SealedLoan(await self._store.lend(worker, limit_seconds), self, self._seal)

    async def repeats(self, unit: Unit) -> bool:
        """Return True if the unit's input is, opened, the one that has its id already."""
        id = unit.dedupe or (unit.accepts[0].message_id if unit.accepts else None)
        carriers = (*unit.events, *unit.accepts, *unit.dead_letters)
        own = next((carrier for carrier in carriers if id is not None and carrier.message_id == id), None)
        if own is None or id is None:
            return False
        ref = Ref(own.workflow, own.instance) if isinstance(own, InputRow) else Ref(unit.workflow, unit.instance)
        known = await self.messages(ref, id)
        return bool(known) and same_message((known[0].type, known[0].body), (own.type, own.body))

    async def relay(self, limit: int) -> Relayed:
        relayed = await self._store.relay(limit)
        letters: list[DeadLetter] = []
        for letter in self._bodies.open_each(relayed.letters):
            known = await self.messages(Ref(letter.workflow, letter.instance), letter.message_id)
            inputs = [(one.type, one.body) for one in known if not isinstance(one, DeadLetter)]
            # Under a newer key the same message has other bytes, and was taken for another.
            if inputs and same_message(inputs[0], (letter.type, letter.body)):
                unwanted = [one.id for one in known if isinstance(one, DeadLetter) and replace(one, id=0) == letter]
                await self._store.commit(0, [Unit("", "", discards=tuple(unwanted))])
            else:
                letters.append(letter)
        return Relayed(relayed.count, tuple(letters))

    # ---- out

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NO_LEAVES
    ) -> Claims:
        claims = await self._store.claim(worker, destinations, workflows, limit, leaves)
        self.renewals.take(claims.outputs, claims.inputs)
        outputs, inputs = self._bodies.open_each(claims.outputs), self._bodies.open_each(claims.inputs)
        return Claims(outputs, inputs, claims.next_due_us, claims.posted)

    async def claim_alone(self, worker: int, suspect: Suspect | None) -> Alone | None:
        taken = await self._store.claim_alone(worker, suspect)
        if taken is None:
            return None
        self.renewals.take([] if taken.output is None else [taken.output], [] if taken.input is None else [taken.input])
        outputs = self._bodies.open_each([taken.output]) if taken.output is not None else [None]
        inputs = self._bodies.open_each([taken.input]) if taken.input is not None else [None]
        return Alone(taken.lost, outputs[0], inputs[0])

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        found = await self._store.load(refs, most)
        return [None if loaded is None else self._loaded(loaded) for loaded in found]

    def _loaded(self, loaded: Loaded) -> Loaded:
        about, bodies = about_of(loaded.row.workflow, loaded.row.id), self._bodies
        snapshot = None if loaded.snapshot is None else bodies.open(loaded.snapshot, about)
        return Loaded(bodies.open_row(loaded.row), snapshot, [bodies.open(event, about) for event in loaded.events])

    async def remembered(self, key: str) -> Remembered | None:
        found = await self._store.remembered(key)
        return None if found is None else self._bodies.open(found, About("", key))

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        about = about_of(ref.workflow, ref.id)
        return [self._bodies.open(event, about) for event in await self._store.stream(ref, after, limit)]

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        found = await self._store.feed(after, limit)
        return [(at, ref, self._bodies.open(event, about_of(ref.workflow, ref.id))) for at, ref, event in found]

    async def messages(self, ref: Ref, message_id: str) -> list[InputRow | EventRow | DeadLetter]:
        about = about_of(ref.workflow, ref.id)
        opened: list[InputRow | EventRow | DeadLetter] = []
        for one in await self._store.messages(ref, message_id):
            if isinstance(one, DeadLetter):
                opened += self._bodies.open_each([one])
            else:
                opened.append(self._bodies.open(one, about))
        return opened

    async def documents(self, projection: str, keys: Sequence[str], generation: int | None = None) -> list[Document]:
        if generation is not None:
            self.renewals.folds(projection, generation)
        found = await self._store.documents(projection, keys, generation)
        return [self._bodies.open(each, About("", each.key)) for each in found]

    async def list_documents(self, projection: str, prefix: str, after: str, limit: int) -> list[Document]:
        found = await self._store.list_documents(projection, prefix, after, limit)
        return [self._bodies.open(each, About("", each.key)) for each in found]

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        return [self._bodies.open_row(row) for row in await self._store.instances(where, limit, after)]

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        rows, behind = await self._store.search(where, limit, after, newest)
        return Found([self._bodies.open_row(row) for row in rows], behind)

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        return self._bodies.open_all(await self._store.inbox(ref, limit))

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        found = await self._store.outputs(ref, timers, limit)
        return self._bodies.open_each(found) if ref is None else self._bodies.open_all(found)

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        about = about_of(ref.workflow, ref.id)
        found = await self._store.attempts(ref, limit)
        return [replace(one, error=self._bodies.open_error(one.error, about)) for one in found]

    async def timers(self, limit: int) -> list[OutputClaim]:
        return self._bodies.open_each(await self._store.timers(limit))

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        found = await self._store.dead_letters(limit, after, ids)
        return self._bodies.open_all(found) if ids is not None else self._bodies.open_each(found)

    async def tasks(self, where: TaskFilter, limit: int, after: TaskSpot | None = None) -> list[TaskRow]:
        page = Page[TaskRow, TaskRow](limit, self._bodies.open_task)
        while page.wants:
            page.take(await self._store.tasks(where, page.wants, after))
            if page.last is not None:
                after = (Ref(page.last.workflow, page.last.instance), page.last.version)
        return page.records

    async def task(self, ref: Ref, version: int) -> TaskRow | None:
        task = await self._store.task(ref, version)
        return None if task is None else self._bodies.open_task(task)

    async def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        task = await self._store.hand(ref, version, hand)
        return self._bodies.open_task(task) if isinstance(task, TaskRow) else task

    async def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        return [self._bodies.open_held_task(task) for task in await self._store.pick(role, actor, limit)]


class _SealedLoan:
    """A loan whose unit is sealed too."""

    def __init__(self, loan: Loan, store: SealedStore, seal: Seal) -> None:
        self._loan = loan
        self._store = store
        self._seal = seal

    @property
    def connection(self) -> Connection:
        return self._loan.connection

    async def advance(self, move: Advance) -> bool:
        # It carries no documents: those are in tables of the projection's own.
        return await self._loan.advance(move)

    async def commit(self, unit: Unit) -> Outcome:
        era, closed = self._store.renewals.era(), self._store.closed(unit)
        if isinstance(closed, Conflict):
            await self._loan.roll_back()
            return closed
        outcome = await self._loan.commit(closed)
        self._store.note(unit, outcome, era)
        return outcome

    async def accept(self, rows: Sequence[InputRow], requires: Sequence[Precondition | None] = ()) -> list[Outcome]:
        outcomes = await self._loan.accept([sealed_input(row, self._seal) for row in rows], requires)
        for row, unit, outcome in zip(rows, accepting(rows), outcomes, strict=True):
            # It is rolled back by now, for under an older key it has other bytes: do not report it as another message.
            if isinstance(outcome, Duplicate) and not outcome.same and await self._store.repeats(unit):
                raise LendingError(
                    f"{row.workflow}/{row.instance} has the message {row.message_id} already, under an older key, "
                    "so the transaction was undone",
                    "Begin it again without this message.",
                )
        return outcomes

    async def roll_back(self) -> None:
        await self._loan.roll_back()

"""What was read before a key was renewed is not written under the new one: such a write is a conflict.

A key is renewed when something is written of a subject whose key was destroyed. Each renewed key begins an era, which
is counted when the key is first met here, before anything is committed under it. What was read in that era or later was
read when the old key was gone, so that it is erased, or new. What was read earlier may be what the old key sealed: a
state, an input that waits for its turn, a command in a handler, a document. A unit or a move made of it is
refused as if another process had changed what it was made of, which is so; what is read anew is found erased.

Nothing is noted before the first key is renewed: what is not noted is of the first era.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mainspring.port.projections import Advance
from mainspring.port.records import Committed, Conflict, InputRow, Outcome, OutputClaim, OutputKey, Unit
from mainspring.sealing.seals import About, RenewingSeal, Seal, Seals, is_secret


class Renewals:
    """A seal that knows in which era each thing that this worker holds was read.

    >>> from mainspring.sealing import Encrypted, StaticKeys
    >>> Renewals(Encrypted(StaticKeys({"2026": bytes(32)}))).era()
    0
    """

    def __init__(self, seal: Seal) -> None:
        self.secret = is_secret(seal)
        # They are called for every body: without a call of its own between, where that can be.
        self._close, self.open = seal.close, seal.open
        seals = seal.seals if isinstance(seal, Seals) else (seal,)
        self._seals = [(each, each if isinstance(each, RenewingSeal) else None) for each in reversed(seals)]
        self._renewing = [renewing for _, renewing in self._seals if renewing is not None]
        self._one = self._renewing[0] if len(self._renewing) == 1 else None
        # What this worker holds: outputs, and inputs by their positions.
        self._held: dict[OutputKey | int, int] = {}
        self._folding: dict[tuple[str, int], int] = {}
        self._newest = 0
        self.began = 0
        """The era in which the last unit was closed."""

    def era(self) -> int:
        """Return how many renewed keys were met so far."""
        return self._one.renewals if self._one is not None else sum(seal.renewals for seal in self._renewing)

    # ---- a seal

    def close(self, body: bytes, about: About) -> bytes:
        stored = self._close(body, about)
        if era := self.era():
            self._look(stored, about, era)
        return stored

    def _look(self, stored: bytes, about: About, era: int) -> None:
        """Find out under which keys something was closed, from the outermost seal inwards."""
        left = len(self._renewing)
        for seal, renewing in self._seals:
            if renewing is not None:
                left -= 1
                if number := renewing.renewal_of(stored):
                    # Where several have keys, it is taken to be as new as can be: that costs a reading at most.
                    self._newest = max(self._newest, era - renewing.renewals + number)
            if not left:
                return
            stored = seal.open(stored, about)

    # ---- what must not be written

    def begin(self) -> None:
        """Begin to close a unit or a move."""
        self._newest, self.began = 0, self.era()

    def refusal(self, unit: Unit) -> Conflict | None:
        """Return why a unit is refused that was closed just now, if it is: it was made of what may be erased."""
        newest = self._newest
        if not newest:
            return None
        if any(newest > self._held.get(output, 0) for output in _outputs(unit)):
            return Conflict("lost")
        # An operator takes an input that no worker holds: that one has just been looked at.
        if unit.era is not None and unit.takes is not None and newest > self._held.get(unit.takes, 0):
            return Conflict("inbox")
        if unit.expected_version is not None and newest > (self.began if unit.era is None else unit.era):
            return Conflict("version")
        return None

    def is_stale(self, move: Advance) -> bool:
        """Return True if documents that were closed just now may be made of what is erased."""
        return self._newest > self._folding.get((move.name, move.generation), 0)

    # ---- what is read

    def folds(self, projection: str, generation: int) -> None:
        """Note that a projection has read events, and reads the documents that they change."""
        if era := self.era():
            self._folding[projection, generation] = era

    def take(self, outputs: Sequence[OutputClaim], inputs: Sequence[InputRow]) -> None:
        """Note what this worker claims, before it is opened."""
        if era := self.era():
            self._held.update((claim.output, era) for claim in outputs)
            self._held.update((row.position, era) for row in inputs)

    def committed(self, unit: Unit, outcome: Outcome | Exception, era: int) -> None:
        """Note what a unit, closed in an era, has released or settled, and claimed, for this worker."""
        if not isinstance(outcome, Committed):
            return
        for done in (*unit.settles, *(retry.output for retry in unit.retries), unit.consumes, *unit.releases):
            self._held.pop(done or 0, None)
        if not era:
            return
        claimed = (OutputKey(outcome.key, output.version) for output in unit.outputs if output.claimed)
        self._held.update((output, era) for output in claimed)
        places = zip(unit.accepts, outcome.positions, strict=True)
        self._held.update((position, era) for row, position in places if row.claimed and position)


def _outputs(unit: Unit) -> Iterator[OutputKey]:
    """Return the outputs held by a worker that a unit was made of."""
    yield from unit.settles
    for retry in unit.retries:
        yield retry.output
    for attempt in unit.attempts:
        yield OutputKey(attempt.instance, attempt.version)

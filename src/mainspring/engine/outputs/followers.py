"""Who hears of a commit."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec.structs import replace

from mainspring.engine.inputs.lanes import Lane
from mainspring.engine.outputs.job import Job
from mainspring.port.records import DeadLetter, InputRow, OutputClaim, OutputKey, Ref


class Followers(Protocol):
    """Who hears of a commit: dispatch of its outputs, claims of what it left unclaimed, waiters for the end."""

    def dispatch(self, outputs: list[tuple[OutputClaim, Any]]) -> None:
        """Carry out outputs that were born claimed; each comes with its message."""
        ...

    def due_at(self, due_us: int) -> None:
        """Know that something unclaimed becomes due."""
        ...

    def accepted(self, row: InputRow, position: int) -> None:
        """Step an input that was accepted into the inbox in this worker's hands."""
        ...

    def ended(self, lane: Lane) -> None:
        """Tell those who wait for the instance's end."""
        ...

    def has_room(self, destination: str) -> bool:
        """Tell whether an output may be born claimed."""
        ...

    def leave(self, ref: Ref, why: str) -> None:
        """Leave an instance to others for a while."""
        ...

    def refuse(self, job: Job, letter: DeadLetter) -> None:
        """Tell the instance that sent a command that it is a dead letter, and was certainly not taken."""
        ...

    def promise(self, outputs: list[tuple[OutputClaim, Any]], times: int) -> None:
        """Count outputs that are to be dispatched when their commit comes back; -1 times takes them back."""
        ...


def keyed(outputs: list[tuple[OutputClaim, Any]], key: int) -> list[tuple[OutputClaim, Any]]:
    """Return outputs with the key that the store gave their instance."""
    if outputs[0][0].output.instance == key:
        return outputs
    return [(replace(claim, output=OutputKey(key, claim.output.version)), message) for claim, message in outputs]

"""What takes workers down, in words: work that was lost with one worker after the other."""

from __future__ import annotations

from typing import Final

from mainspring.engine.claiming.lone_trials import MAX_LOST, SUSPECTS_LOOKED_AT
from mainspring.port.records import Ref
from mainspring.port.store import Store
from mainspring.port.suspects import SUSPECT, Suspect

FIX: Final = "Find out why the workers ended: out of memory, a crash, or a loop that never ends."


async def suspected(store: Store) -> dict[Ref, list[str]]:
    """Return what is told of work that may take workers down, by its instances; what was lost most first."""
    found: dict[Ref, list[str]] = {}
    for suspect in await store.suspects(SUSPECTS_LOOKED_AT):
        found.setdefault(Ref(suspect.workflow, suspect.instance), []).append(told(suspect))
    return found


def told(suspect: Suspect) -> str:
    """Return what is known of it.

    >>> told(Suspect("Orders", "o-1", "Charge", 3, 2))
    'Charge (Orders/o-1/3) was lost with 2 workers; it waits to be tried alone'
    >>> told(Suspect("Orders", "o-1", "Charge", 3, 4, aside=False))
    'Charge (Orders/o-1/3) takes workers down: 4 were lost with it, 2 of them tried nothing else; it is in a worker now'
    """
    now = "it waits to be tried alone" if suspect.aside else "it is in a worker now"
    if suspect.lost <= SUSPECT:
        return f"{suspect.name} was lost with {suspect.lost} workers; {now}"
    alone = min(suspect.lost - SUSPECT, MAX_LOST)
    lost = f"{suspect.lost} were lost with it, {alone} of them tried nothing else"
    return f"{suspect.name} takes workers down: {lost}; {now}"

"""What clients saw of slates, journeys and meters: read, looked at once more at rest, and judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mainspring import Mainspring, SendFailed
from tests.proof.crash.files import Place
from tests.proof.crash.journey import (
    MESSAGES,
    Answered,
    Ask,
    Despair,
    Home,
    Journey,
    Leg,
    LegDone,
    New,
    Paid,
    Pay,
    Resting,
    Steadied,
    Travelling,
    Wobble,
)
from tests.proof.crash.saga_workflows import Meter, Peek, Reading, Turn, Turned
from tests.proof.histories import slates
from tests.proof.histories.calls import Call, Witness, read_calls
from tests.proof.histories.judge import Judged, judge
from tests.proof.histories.model import Instance


def _results(command: Any) -> Iterable[Any]:
    """Return what comes back of a journey's command. What an account answers is not seen in the journey's state."""
    match command:
        case Leg(journey, leg):
            return [LegDone(journey, leg)]
        case Wobble(journey):
            return [Steadied(journey)]
        case Despair():
            return [SendFailed("Despair", "", "", 0)]
        case Pay(journey):
            return [Paid(journey)]
        case Ask(_, journey):
            return [Answered(journey, 0)]
        case _:
            return []


def _grows_to(state: Turned, seen: Turned) -> bool:
    return seen.numbers[: len(state.numbers)] == state.numbers


STATES: Final = (New, Travelling, Resting, Home, Turned)
TYPES: Final = {
    **slates.TYPES,
    **MESSAGES,
    **{cls.__name__: cls for cls in (*STATES, Turn, Peek, Reading)},
}
MODELS: Final = {
    **slates.MODELS,
    "Journey": Instance(Journey(), results=_results),
    "Meter": Instance(Meter(), grows_to=_grows_to),
}


async def last_look(app: Mainspring, place: Place) -> None:
    """Read all that was ever asked for anything, when nothing happens any more."""
    witness = Witness(app, place.history("rest"), "rest")
    for to in sorted({call.to for call in read_histories(place)}):
        await witness.state(to, at_rest=True)


def read_histories(place: Place) -> list[Call]:
    return read_calls(place.histories(), MODELS, TYPES)


def judge_histories(place: Place) -> Judged:
    return judge(read_histories(place), MODELS)

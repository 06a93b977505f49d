"""The drills in their short form; `python -m tests.proof.broker_faults` is the long one, with more of both."""

import asyncio
from pathlib import Path

import pytest
from msgspec import json

from mainspring.brokers import Delivery
from tests.edges.brokers.servers import Unavailable
from tests.proof.broker_faults.drill import Drill, Stage, Victim
from tests.proof.broker_faults.stages import STAGES
from tests.proof.broker_faults.worker_process import CONFIRM_SECONDS
from tests.proof.crash.files import Lines, Place
from tests.support.soaking import some_of

PARCELS = 60
SHORT: dict[str, tuple[Victim, ...]] = {
    "nats": ("after acknowledging", "broker"),
    "nats-cluster": ("broker",),  # one node of three
    "valkey": ("after acknowledging", "broker"),
}


@pytest.mark.parametrize("broker", some_of(SHORT, ("nats", "valkey")))
def test_nothing_is_lost_or_doubled_when_worker_and_broker_are_killed(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.brokers.nats_publishing.CONFIRM_SECONDS", CONFIRM_SECONDS)
    make, _ = STAGES[broker]
    try:
        with make(tmp_path) as stage:
            outcome = asyncio.run(Drill(stage, tmp_path, PARCELS, SHORT[broker], patient=False).run())
    except Unavailable as reason:
        pytest.skip(f"no {broker}: {reason}")
    assert outcome.complaints == []


def test_the_judge_finds_what_is_lost_doubled_or_left(tmp_path: Path) -> None:
    drill = Drill(Stage("nobody", "memory://"), tmp_path, 4, ["worker"])
    effects = Lines(Place(tmp_path).effects)
    for key, parcel in (("k-0", "p-0"), ("k-1", "p-1"), ("k-2", "p-1"), ("k-3", "p-3")):
        effects.add(effect=key, what=parcel)
    for id, parcel in (("a", "p-0"), ("a", "p-0"), ("b", "p-1"), ("c", "p-3"), ("d", "p-3"), ("e", "p-9")):
        drill.note([Delivery(json.encode({"parcel": parcel, "notes": [1, 2]}), {"ce-id": id}, None)])
    drill.note([Delivery(b'{"parcel":"p-0","notes":[2,1]}', {"ce-id": "a"}, None)])
    assert drill.judge() == [
        "the notes of p-0 came in the order [2, 1]",
        "p-1 was weighed 2 times",
        "p-2 was weighed 0 times",
        "p-2 was reported under 0 ids",
        "p-3 was reported under 2 ids",
        "nobody posted ['p-9']",
        "there is no database",
        "not all were killed who should be: ['worker'] are left",
    ]

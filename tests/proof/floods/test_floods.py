"""The floods in short; `python -m tests.proof.floods` has more of them, longer ones, and figures."""

from pathlib import Path

import pytest

from tests.proof.floods.flood import Flood, run

FLOODS = [
    Flood("header", seconds=1, connections=4, most_mb=20),
    Flood("slow_headers", seconds=1, connections=300, files=256),
    pytest.param(Flood("nonsense", seconds=2, connections=20), marks=pytest.mark.soak),
]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is asked of /proc")
@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.kind)
def test_health_is_told_in_a_flood_that_fills_neither_memory_nor_log(flood: Flood) -> None:
    assert run(flood).faults == []

"""A live run decides what the code decides that is run anew on the journal."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.flows.programs import Go, Program, World

NAMES = st.sampled_from(["a", "b"])
SECONDS = st.sampled_from([0, 0.5, 0.1, 3, 300, 86_400.25])


def leaf() -> st.SearchStrategy[Program]:
    return st.one_of(
        st.tuples(st.just("call"), NAMES),
        st.tuples(st.just("sleep"), SECONDS),
        st.tuples(st.just("receive"), st.sampled_from(["ping", "pong", "either"])),
        st.tuples(st.just("each"), st.integers(0, 3)),
        st.tuples(st.just("ask")),
        st.tuples(st.just("seen")),
        st.tuples(st.just("stage"), st.sampled_from(["first", "second"])),
    )


def around(inner: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        several.map(lambda parts: ("sequence", *parts)),
        several.map(lambda parts: ("gather", *parts)),
        several.map(lambda parts: ("group", *parts)),
        several.map(lambda parts: ("race", *parts)),
        st.tuples(st.just("timeout"), SECONDS, inner),
        st.tuples(st.just("wait_for"), SECONDS, inner),
        st.tuples(st.just("cancel"), inner),
        st.tuples(st.just("caught"), inner),
        st.tuples(st.just("queue"), inner),
    )


PROGRAMS = st.recursive(leaf(), around, max_leaves=8)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(PROGRAMS, st.data())
def test_a_live_run_decides_what_the_code_run_anew_decides(program: Program, data: st.DataObject) -> None:
    world = World()
    world.take(Go("p", program))
    for _ in range(25):
        if world.ended:
            break
        world.come(data.draw(st.sampled_from(world.choices())))

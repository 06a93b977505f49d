from tests.support.ordering import dealt

SECONDS = {"long/": 30.0, "longer/": 50.0, "demo.py": 20.0}


def ordered(names: list[str], workers: int) -> list[str]:
    return [names[place] for place in dealt(names, SECONDS, workers)]


def test_what_takes_long_begins_the_part_of_each_worker_and_files_stay_together() -> None:
    short = [f"a.py::{n}" for n in range(7)]
    names = [*short, "long/b.py::1", "long/b.py::2", "longer/c.py::1", "z.py::1", "demo.py::1"]

    order = ordered(names, 2)

    assert order[:6] == ["longer/c.py::1", *short[:5]]
    assert order[6:] == ["long/b.py::1", "long/b.py::2", "demo.py::1", *short[5:], "z.py::1"]


def test_one_process_begins_with_the_longest() -> None:
    assert ordered(["a.py::1", "demo.py::1", "longer/c.py::1"], 1) == ["longer/c.py::1", "demo.py::1", "a.py::1"]


def test_no_test_is_lost_where_there_are_more_workers_than_tests_or_long_ones_alone() -> None:
    for names in ([], ["a.py::1"], [f"long/{n}.py::{m}" for n in range(2) for m in range(5)]):
        assert sorted(ordered(names, 3)) == sorted(names)

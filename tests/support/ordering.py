"""In which order tests run, so that no long one is left to run alone when all the others are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter


def dealt(names: Sequence[str], seconds: Mapping[str, float], workers: int) -> list[int]:
    """Return the places of tests in the order in which they are to run.

    `names` are their ids, and `seconds` says how long a file or folder takes, by the beginning of a name. Each of the
    workers begins with the next equal part of all tests (so does pytest-xdist's worksteal), and when it has none left
    it takes some from the end of another's. So the long ones are dealt to the beginnings of the parts; a file's tests
    stay together, because they share what they set up.
    """
    files = [list(group) for _, group in groupby(range(len(names)), key=lambda place: names[place].partition("::")[0])]
    weighed = [(_weight(names[file[0]], seconds), file) for file in files]
    begins: list[tuple[float, list[int]]] = [(0, [])] * workers
    for weight, file in sorted(weighed, key=itemgetter(0), reverse=True):
        if weight:
            least = min(range(workers), key=lambda worker: begins[worker][0])
            begins[least] = (begins[least][0] + weight, begins[least][1] + file)
    others = [place for weight, file in weighed if not weight for place in file]
    order: list[int] = []
    for worker, (_, long) in enumerate(begins):
        size = (len(names) - len(order)) // (workers - worker)
        taken = max(0, size - len(long))
        order += [*long, *others[:taken]]
        others = others[taken:]
    return order + others


def _weight(name: str, seconds: Mapping[str, float]) -> float:
    return max((weight for begin, weight in seconds.items() if name.startswith(begin)), default=0)

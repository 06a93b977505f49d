"""A layout draws everything, and nothing on top of anything else, whatever the graph."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.analysis.diagram.layers import Box, Layers, Line, leads_back, ranks_of
from mainspring.analysis.diagram.layout import Layout, PlacedBox, PlacedLine, Point, lay_out

Area = tuple[float, float, float, float]

POINTS_PER_CURVE = 12
TOLERANCE_PX = 0.01


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[Line]]:
    sizes = draw(st.lists(st.tuples(st.integers(14, 200), st.integers(14, 60)), min_size=1, max_size=9))
    boxes = [Box(f"S{place}", width, height) for place, (width, height) in enumerate(sizes)]
    names = st.sampled_from([box.name for box in boxes])
    pairs = draw(st.lists(st.tuples(names, names), unique=True, max_size=18))
    heights = st.integers(0, 75)
    return boxes, [Line(source, target, draw(st.integers(0, 220)), draw(heights)) for source, target in pairs]


def area_of(placed: PlacedBox) -> Area:
    return (placed.left, placed.top, placed.right, placed.bottom)


def label_of(placed: PlacedLine) -> Area:
    (x, y), line = placed.label, placed.line
    return (x - line.width / 2, y - line.height / 2, x + line.width / 2, y + line.height / 2)


def overlap(one: Area, other: Area) -> bool:
    return (
        one[0] < other[2] - TOLERANCE_PX
        and other[0] < one[2] - TOLERANCE_PX
        and one[1] < other[3] - TOLERANCE_PX
        and other[1] < one[3] - TOLERANCE_PX
    )


def points_of(placed: PlacedLine) -> Iterator[Point]:
    start = placed.start
    for curve in placed.curves:
        for n in range(POINTS_PER_CURVE + 1):
            t = n / POINTS_PER_CURVE
            shares = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            points = (start, curve.first, curve.second, curve.end)
            x, y = (sum(share * point[axis] for share, point in zip(shares, points, strict=True)) for axis in (0, 1))
            yield x, y
        start = curve.end


def inside(point: Point, area: Area) -> bool:
    return area[0] + 0.5 < point[0] < area[2] - 0.5 and area[1] + 0.5 < point[1] < area[3] - 0.5


def areas(layout: Layout) -> list[Area]:
    labels = [label_of(line) for line in layout.lines if line.line.width and line.line.height]
    return [*map(area_of, layout.boxes), *labels]


@given(graphs())
@settings(max_examples=15, deadline=None)
def test_neither_boxes_nor_labels_overlap(graph: tuple[list[Box], list[Line]]) -> None:
    layout = lay_out(*graph)

    assert [pair for pair in combinations(areas(layout), 2) if overlap(*pair)] == []


@given(graphs())
@settings(max_examples=15, deadline=None)
def test_everything_lies_inside_the_picture(graph: tuple[list[Box], list[Line]]) -> None:
    layout = lay_out(*graph)

    for left, top, right, bottom in areas(layout):
        assert left >= -TOLERANCE_PX
        assert top >= -TOLERANCE_PX
        assert right <= layout.width + TOLERANCE_PX
        assert bottom <= layout.height + TOLERANCE_PX


@given(graphs())
@settings(max_examples=15, deadline=None)
def test_every_line_leads_from_its_source_to_its_target_and_through_no_other_box(
    graph: tuple[list[Box], list[Line]],
) -> None:
    layout = lay_out(*graph)
    places = {placed.box.name: area_of(placed) for placed in layout.boxes}

    assert [placed.line for placed in layout.lines] == graph[1]
    for placed in layout.lines:
        source, target = places[placed.line.source], places[placed.line.target]
        assert source[0] <= placed.start[0] <= source[2]
        assert source[1] <= placed.start[1] <= source[3]
        assert target[0] <= placed.end[0] <= target[2]
        assert target[1] <= placed.end[1] <= target[3]
        for area in places.values():
            assert not any(inside(point, area) for point in points_of(placed))


@given(graphs())
@settings(max_examples=10, deadline=None)
def test_the_same_graph_is_laid_out_the_same_every_time(graph: tuple[list[Box], list[Line]]) -> None:
    assert lay_out(*graph) == lay_out(*graph)


@given(graphs())
@settings(max_examples=15, deadline=None)
def test_all_lines_but_those_that_lead_back_go_down(graph: tuple[list[Box], list[Line]]) -> None:
    boxes, lines = graph
    back = leads_back(boxes, lines)
    ranks = ranks_of(boxes, lines, back)

    for place, line in enumerate(lines):
        if line.source != line.target:
            assert (ranks[line.source] > ranks[line.target]) == (place in back)


def test_a_way_back_is_what_leads_back_seen_from_the_first_box() -> None:
    boxes = [Box(name, 10, 10) for name in "ABC"]
    lines = [Line("C", "A"), Line("A", "B"), Line("B", "C")]

    assert leads_back(boxes, lines) == {0}


def test_lines_that_need_not_cross_do_not() -> None:
    boxes = [Box(name, 40, 20) for name in ("top", "a", "b", "c", "x", "y", "z")]
    lines = [Line("top", name) for name in "abc"] + [Line("a", "z"), Line("b", "y"), Line("c", "x")]

    layers = Layers(boxes, lines, 6, 30)
    layers.order()

    assert layers.crossings() == 0


def test_a_chain_stands_in_one_column() -> None:
    boxes = [Box(name, 40 + 30 * place, 20) for place, name in enumerate("ABCD")]

    layout = lay_out(boxes, [Line(one.name, other.name, 50, 15) for one, other in pairwise(boxes)])

    assert len({round(placed.x, 3) for placed in layout.boxes}) == 1

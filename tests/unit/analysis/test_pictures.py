"""Mermaid, DOT and SVG: each says all of a diagram, and is understood by whoever reads it, whatever names are like."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.analysis.diagram.diagram import Arrow, Diagram, Node, Seen, Step
from mainspring.analysis.diagram.dot import to_dot
from mainspring.analysis.diagram.mermaid import to_mermaid
from mainspring.analysis.diagram.svg import LABELS_SHOWN, to_svg
from mainspring.analysis.documentation.blocks import Heading, Page, Picture
from mainspring.analysis.documentation.html import to_html
from mainspring.analysis.figures.charts import Bar, bar_chart
from tests.unit.analysis.mermaid_grammar import read_mermaid

SVG = "{http://www.w3.org/2000/svg}"
STRANGE = 'a"b; c: d <e> & #35; {f} | \\g\n`h` -->'

BOTH = Diagram(
    "Door",
    "both",
    (
        Node("(begin)", "begin"),
        Node("New"),
        Node("Building", visits=1_204, now=3, dwell_seconds=90),
        Node("Painting", seen="code"),
        Node("Varnished", seen="history", visits=1),
        Node("Gone", ends=("completed",)),
        Node("(failed)", "end", ends=("failed",)),
    ),
    (
        Arrow("(begin)", "New"),
        Arrow("New", "Building", (Step("Order", "both", count=1_204),)),
        Arrow("Building", "Painting", (Step("Paint", "code"),)),
        Arrow("Building", "Varnished", (Step("Varnish", "history", count=1),)),
        Arrow("Building", "Building", (Step("Look", "both", count=7),)),
        Arrow("Building", "Gone", (Step("Built", "both", ("width <= 200",), count=1_000),)),
        Arrow("Painting", "Building", (Step("Dry", "code"),)),
        Arrow("Building", "(failed)", (Step("Built", "code", ("width > 200",)), Step("GiveUp", "both", count=3))),
    ),
    instances=1_204,
    notes=("2 steps that change and decide nothing are not drawn.",),
)

# The characters that mean something to one of the three, and a few of every other kind: Hypothesis's own table of all
# characters takes seconds to build.
ODD = "aB9_ .,:;#%&|<>{}[]()\"'`\\/=+-*→×ü語🙂\n\t\x00\x07\x1b\u2028\uffff"
names = st.text(ODD, min_size=1, max_size=12)
seen: st.SearchStrategy[Seen] = st.sampled_from(get_args(Seen))


@st.composite
def diagrams(draw: st.DrawFn) -> Diagram:
    states = draw(st.lists(names, unique=True, min_size=1, max_size=6))
    pairs = draw(st.lists(st.tuples(st.sampled_from(states), st.sampled_from(states)), unique=True, max_size=8))
    steps = st.lists(st.builds(Step, names, seen, st.tuples(names) | st.just(())), min_size=1, max_size=7)
    arrows = tuple(Arrow(source, target, (*draw(steps),)) for source, target in pairs)
    nodes = tuple(Node(name, seen=draw(seen), visits=draw(st.none() | st.integers(0, 9))) for name in states)
    return Diagram(draw(names), "both", nodes, arrows, notes=(*draw(st.lists(names, max_size=2)),))


# ---- Mermaid


def test_mermaid_says_all_of_a_diagram() -> None:
    read = read_mermaid(to_mermaid(BOTH))

    assert read.states == {
        "New": "New",
        "Building": "Building<br/>1,204 visits · 3 now · median 1.5 min",
        "Painting": "Painting",
        "Varnished": "Varnished<br/>1 visit",
        "Gone": "Gone",
    }
    assert read.arrows == [
        ("[*]", "New", ()),
        ("New", "Building", ("Order ×1,204",)),
        ("Building", "Painting", ("Paint (never happened)",)),
        ("Building", "Varnished", ("Varnish ×1 (older code)",)),
        ("Building", "Building", ("Look ×7",)),
        ("Building", "Gone", ("Built ×1,000 [width <= 200]",)),
        ("Painting", "Building", ("Dry (never happened)",)),
        ("Building", "[*]", ("Built [width > 200] (never happened) (failed)", "GiveUp ×3 (failed)")),
        ("Gone", "[*]", ("completed",)),
    ]
    assert read.classes == {"code": ("Painting",), "history": ("Varnished",)}
    assert read.comments == list(BOTH.notes)


@given(diagrams())
@settings(max_examples=20, deadline=None)
def test_mermaid_is_understood_whatever_names_are_like(diagram: Diagram) -> None:
    read = read_mermaid(to_mermaid(diagram))

    assert len(read.states) == len(diagram.nodes)
    assert len(read.arrows) == len(diagram.arrows)


def test_a_label_in_mermaid_reads_as_it_was_meant() -> None:
    diagram = Diagram("W", "code", (Node("A"),), (Arrow("A", "A", (Step("Go", "both", (STRANGE,)),)),))

    ((_, _, (label,)),) = read_mermaid(to_mermaid(diagram)).arrows

    assert label == f"Go [{' '.join(STRANGE.split())}]"


@pytest.mark.parametrize("name", ["end", "state", "note", "9lives", "shop.Paid", "Bezahlt?", "[*]"])
def test_a_state_whose_name_means_something_to_mermaid_has_another_name_there(name: str) -> None:
    read = read_mermaid(to_mermaid(Diagram("W", "code", (Node(name),), (Arrow(name, name, (Step("Go", "both"),)),))))

    assert list(read.states.values()) == [name]


# ---- DOT

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*|-?\d+(?:\.\d+)?|->|[{}\[\]=]|//[^\n]*|\s+', re.DOTALL)


def tokens_of(text: str) -> list[str]:
    """Return the words of a DOT text; anything that is none is an error."""
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match, f"DOT would not understand {text[at : at + 40]!r}"
        at = match.end()
        if not match[0].isspace() and not match[0].startswith("//"):
            found.append(match[0])
    return found


def arrows_of(text: str) -> list[tuple[str, str]]:
    tokens = tokens_of(text)
    return [
        (tokens[place - 1], tokens[place + 1])
        for place, token in enumerate(tokens)
        if token == "->"  # noqa: S105  no secret
    ]


def test_dot_says_all_of_a_diagram() -> None:
    text = to_dot(BOTH)

    assert arrows_of(text) == [(f'"{arrow.source}"', f'"{arrow.target}"') for arrow in BOTH.arrows]
    assert '"Painting" [label="Painting" style="rounded,dashed"' in text
    assert '"Building" [label="Building\\n1,204 visits · 3 now · median 1.5 min"]' in text
    assert '"Gone" [label="Gone\\ncompleted" peripheries=2]' in text
    assert f"// {BOTH.notes[0]}" in text


@given(diagrams())
@settings(max_examples=12, deadline=None)
def test_dot_is_understood_whatever_names_are_like(diagram: Diagram) -> None:
    text = to_dot(diagram)

    assert len(arrows_of(text)) == len(diagram.arrows)
    assert tokens_of(text).count("{") == tokens_of(text).count("}") == 1


# ---- SVG


def parsed(diagram: Diagram) -> ET.Element:
    return ET.fromstring(to_svg(diagram))  # noqa: S314  our own text


def texts(svg: ET.Element) -> list[str]:
    return [text.text or "" for text in svg.iter(f"{SVG}text")]


def test_an_svg_says_all_of_a_diagram() -> None:
    svg = parsed(BOTH)

    assert svg.findtext(f"{SVG}title") == "State diagram of Door, from its code and history"
    for node in BOTH.nodes:
        if node.kind == "state":
            assert node.name in texts(svg)
    for arrow in BOTH.arrows:
        for step in arrow.steps:
            assert step.head in texts(svg)
            assert step.guard in [*texts(svg), ""]
    assert len([path for path in svg.iter(f"{SVG}path") if path.get("class") == "head"]) == len(BOTH.arrows)
    assert "2 steps that change and decide nothing are not drawn." in texts(svg)


@pytest.mark.parametrize("seen", ["code", "history"])
def test_what_was_seen_on_one_side_only_has_a_class_and_a_key_in_the_svg(seen: Seen) -> None:
    svg = parsed(BOTH)
    groups = [group for group in svg.iter(f"{SVG}g") if group.get("class") == seen]
    titles = [group.findtext(f"{SVG}title") or "" for group in groups]

    wanted = {"code": "never happened", "history": "older code"}[seen]
    assert sum(wanted in title for title in titles) >= 1
    assert any(wanted in text for text in texts(svg))


@given(diagrams())
@settings(max_examples=12, deadline=None)
def test_an_svg_is_well_formed_and_all_its_texts_lie_inside(diagram: Diagram) -> None:
    svg = parsed(diagram)

    _, _, width, height = map(float, (svg.get("viewBox") or "").split())
    for text in svg.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x") or -1) <= width
        assert 0 <= float(text.get("y") or -1) <= height


def test_a_long_list_of_labels_is_cut_in_the_picture_and_whole_when_pointed_at() -> None:
    steps = tuple(Step(f"Message{n}", "both") for n in range(9))
    svg = parsed(Diagram("W", "code", (Node("A"), Node("B")), (Arrow("A", "B", steps),)))

    shown = [text for text in texts(svg) if text.startswith(("Message", "+"))]
    titles = [title.text or "" for title in svg.iter(f"{SVG}title")]

    assert len(shown) == LABELS_SHOWN
    assert shown[-1] == "+5 more"
    assert any(all(step.message in title for step in steps) for title in titles)


def test_an_svg_asks_for_nothing_and_runs_nothing() -> None:
    text = to_svg(Diagram("<script>", "code", (Node("<img src=x>"),), (), notes=("]]><script>",)))

    assert "<script" not in text
    assert "<img" not in text
    assert not re.search(r"href|url\(|@import|src=", text.replace("&lt;img src=x&gt;", ""))


def test_what_no_document_may_hold_breaks_none() -> None:
    told = "red \x1b[31m and \x00"
    page = Page("Door", told, (Heading(told, 1), Picture(Diagram(told, "code", (Node("A", doc=told),), ()))))

    ET.fromstring(to_svg(Diagram(told, "code", (Node("A", doc=told),), ())))  # noqa: S314  our own
    ET.fromstring(bar_chart(told, told, [Bar(told, 1.0, told)]))  # noqa: S314  our own
    assert not set(to_html(page)) & {"\x1b", "\x00"}

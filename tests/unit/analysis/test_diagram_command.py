"""`mainspring diagram`, on the examples and their databases."""

from __future__ import annotations

import asyncio
import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import pytest

from mainspring.analysis.diagram.diagram import Diagram, diagram_of
from mainspring.analysis.diagram.mermaid import to_mermaid
from mainspring.analysis.diagram.mining import machine_of, mined_of
from mainspring.analysis.diagram.svg import to_svg
from mainspring.app.internals import internals_of
from tests.edges.cli.conftest import Ran, call
from tests.edges.cli.test_command_line import section
from tests.unit.analysis.approved import approved
from tests.unit.analysis.door_orders import Built, Order, doors
from tests.unit.analysis.example_apps import WORKFLOWS, app_of
from tests.unit.analysis.mermaid_grammar import read_mermaid
from tests.unit.analysis.test_layout import Area, overlap

SVG = "{http://www.w3.org/2000/svg}"


def diagram(example: str, *arguments: str) -> Ran:
    return call("diagram", "--app", f"tests.unit.analysis.example_apps:{example}", *arguments)


@pytest.fixture(scope="session")
def drawn(example_databases: Path) -> dict[str, tuple[Diagram, Diagram]]:
    """Every workflow of the examples: its code, and its code and history."""

    async def draw() -> dict[str, tuple[Diagram, Diagram]]:
        found: dict[str, tuple[Diagram, Diagram]] = {}
        for example in WORKFLOWS:
            app = app_of(example, example_databases)
            await app.start(work=False)
            for workflow in WORKFLOWS[example]:
                entry = internals_of(app).registry.workflows[workflow.__name__]
                machine, mined = machine_of(entry), await mined_of(internals_of(app).engine.store, entry.name, entry)
                found[entry.name] = (diagram_of(machine, None), diagram_of(machine, mined))
            await app.stop()
        return found

    return asyncio.run(draw())


def test_the_examples_drawn_from_their_code_are_the_approved_ones(drawn: dict[str, tuple[Diagram, Diagram]]) -> None:
    for name, (code, _) in drawn.items():
        text = to_mermaid(code)
        read_mermaid(text)
        approved(f"diagram/{name}.code.mmd", text)


def test_the_examples_drawn_with_their_history_are_the_approved_ones(
    drawn: dict[str, tuple[Diagram, Diagram]],
) -> None:
    for name, (_, both) in drawn.items():
        text = to_mermaid(both)
        assert "older code" not in text, "the code is the one that wrote the history"
        read_mermaid(text)
        approved(f"diagram/{name}.both.mmd", text)


@pytest.mark.parametrize("which", [0, 1], ids=["code", "both"])
def test_in_the_pictures_of_the_examples_nothing_overlaps_and_nothing_is_cut(
    drawn: dict[str, tuple[Diagram, Diagram]], which: int
) -> None:
    for diagrams in drawn.values():
        diagram = diagrams[which]
        svg = ET.fromstring(to_svg(diagram))  # noqa: S314  ours
        areas = [area_of(rect) for rect in outlines_of(svg)]
        _, _, width, height = map(float, (svg.get("viewBox") or "").split())

        assert [pair for pair in combinations(areas, 2) if overlap(*pair)] == []
        assert all(left >= 0 and right <= width and top >= 0 and bottom <= height for left, top, right, bottom in areas)
        heads = [path for path in svg.iter(f"{SVG}path") if path.get("class") == "head"]
        assert len(heads) == len(diagram.arrows)
        boxes = sum(node.kind != "begin" for node in diagram.nodes)
        assert len(areas) == boxes + sum(bool(arrow.steps) for arrow in diagram.arrows)


def test_the_command_writes_what_was_drawn(examples: Path, drawn: dict[str, tuple[Diagram, Diagram]]) -> None:
    ran = diagram("order_processing", "--from", "both")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == to_mermaid(drawn["OrderProcessing"][1])


def outlines_of(svg: ET.Element) -> list[ET.Element]:
    """Return the outer rectangle of every box, and that behind every label."""
    return [rects[0] for group in svg.iter(f"{SVG}g") if (rects := group.findall(f"{SVG}rect"))]


def area_of(rect: ET.Element) -> Area:
    left, top, width, height = (float(rect.get(name) or "nan") for name in ("x", "y", "width", "height"))
    return (left, top, left + width, top + height)


# ---- what it does with what it is given


def test_a_file_has_the_format_of_its_ending_and_is_written_whole(examples: Path) -> None:
    for name, begin in (("d.svg", "<svg "), ("d.dot", "digraph "), ("d.mmd", "stateDiagram-v2"), ("d.txt", "stateDi")):
        ran = diagram("traffic_fine", "-o", name)

        assert (ran.code, ran.out, ran.err) == (0, "", f"{name}: 5 states, 6 steps\n")
        assert Path(name).read_text().startswith(begin)
    assert not [path.name for path in examples.iterdir() if path.name.startswith(".d")]


def test_the_code_is_drawn_without_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert diagram("order_processing").code == 0
    assert list(tmp_path.iterdir()) == []


def test_an_app_with_several_workflows_asks_which(examples: Path) -> None:
    ran = diagram("order_inventory")

    assert (ran.code, ran.err) == (2, "Error: Which workflow? This app has Order, Inventory.\n")


def test_a_workflow_that_is_not_there_is_told(examples: Path) -> None:
    ran = diagram("order_inventory", "Orders")

    assert (ran.code, ran.err) == (2, "Error: There is no workflow Orders. This app has Order, Inventory.\n")


def test_history_that_is_not_there_is_told(examples: Path) -> None:
    ran = diagram("order_inventory", "Orders", "--from", "history")

    told = "Error: There is no instance of Orders to draw. Draw its code with --from code.\n"
    assert (ran.code, ran.err) == (3, told)


def test_what_chooses_instances_needs_history(examples: Path) -> None:
    ran = diagram("order_processing", "--since", "7d")

    assert ran.code == 2
    assert "use --from history or --from both" in ran.err


def test_instances_are_chosen_by_when_they_moved(examples: Path) -> None:
    everything = diagram("order_processing", "--from", "history", "--json").document
    later = diagram("order_processing", "--from", "history", "--since", "2026-01-01T01:00Z", "--json").document
    sample = diagram("order_processing", "--from", "history", "--sample", "5", "--json").document

    assert everything["instances"] == 20
    assert 0 < later["instances"] < 20
    assert sample["instances"] == 5


def test_a_file_that_cannot_be_written_is_told(examples: Path) -> None:
    ran = diagram("traffic_fine", "-o", "nowhere/d.svg")

    assert (ran.code, ran.err) == (1, "Error: nowhere/d.svg cannot be written: No such file or directory.\n")


def test_with_no_instance_at_all_everything_never_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    drawn = diagram("traffic_fine", "--from", "both", "--json").document

    assert {step["seen"] for arrow in drawn["arrows"] for step in arrow["steps"]} == {"code"}
    assert drawn["notes"] == ["No instance was found: nothing of this has happened."]


def test_what_only_older_code_did_is_drawn_from_what_it_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is that of doors; the app that looks at it has none."""
    monkeypatch.chdir(tmp_path)

    async def work() -> None:
        async with doors("sqlite:///order_processing.db") as app:
            await app.send(Order("a"))
            await app.send(Built("a"))

    asyncio.run(work())

    read = read_mermaid(diagram("order_processing", "Door", "--from", "history").out)

    assert read.arrows == [("[*]", "Building", ("Order ×1",)), ("Building", "OnTheWay", ("Built ×1",))]


def test_the_page_of_commands_names_every_field_of_the_json(examples: Path) -> None:
    drawn = diagram("order_processing", "--from", "both", "--json").document
    arrow = next(arrow for arrow in drawn["arrows"] if arrow["steps"])
    fields = {*drawn, *drawn["nodes"][0], *arrow, *arrow["steps"][0]}

    assert fields <= set(re.findall(r"`(\w+)`", section("mainspring diagram")))

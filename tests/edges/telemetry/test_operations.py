"""The dashboard and the alerts name what there is, and say what to do."""

import json
import re
from typing import Any

import pytest
import yaml

from mainspring.cli.group import commands
from mainspring.telemetry.instruments import Instruments
from tests.support.paths import ROOT

DOCS = ROOT / "docs"
DEFINITIONS = {instrument.definition.prometheus: instrument.definition for instrument in Instruments()}
NAME = re.compile(r"\bmainspring_[a-z_]+")
LABEL = re.compile(r"(?:by|without) \(([^)]*)\)|\{([^}]*)\}")
# What Prometheus adds by itself, and what a query may group by.
OWN_LABELS = {"job", "instance", "le"}


def panels() -> list[dict[str, Any]]:
    return json.loads((DOCS / "operations/grafana-dashboard.json").read_text())["panels"]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((DOCS / "operations/alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def queries() -> list[str]:
    drawn = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    return [*drawn, *(rule["expr"] for rule in rules())]


def metric_of(name: str) -> str:
    """Return the metric of a series: a histogram has several."""
    return name if name in DEFINITIONS else re.sub(r"_(bucket|sum|count)$", "", name)


@pytest.mark.parametrize("query", queries())
def test_a_query_names_metrics_and_labels_that_exist(query: str) -> None:
    named = [metric_of(name) for name in NAME.findall(query)]
    assert named
    assert set(named) <= set(DEFINITIONS)
    known = {label for name in named for label in DEFINITIONS[name].labels} | OWN_LABELS
    for grouped, matched in LABEL.findall(query):
        labels = (
            grouped.split(",") if grouped else [part.partition("=")[0] for part in re.split(r",(?=[a-z]+=)", matched)]
        )
        assert {label.strip() for label in labels} <= known, query
    # Only a counter has a rate, and only a histogram buckets.
    for name in re.findall(r"(?:rate|increase)\((mainspring_[a-z_]+)", query):
        assert DEFINITIONS[metric_of(name)].kind == ("histogram" if name.endswith("_bucket") else "counter")


def test_the_dashboard_shows_every_metric() -> None:
    drawn = {
        metric_of(name) for panel in panels() for t in panel.get("targets", ()) for name in NAME.findall(t["expr"])
    }
    assert drawn == set(DEFINITIONS)


def test_panels_have_places_of_their_own() -> None:
    taken = [
        (x, y)
        for panel in panels()
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken))
    assert len({panel["id"] for panel in panels()}) == len(panels())
    assert all(panel["title"] and (panel["type"] == "row" or panel["description"]) for panel in panels())


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"Mainspring[A-Z][A-Za-z]+", rule["alert"])
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert len(rule["annotations"]["runbook"]) > 80
    told = " ".join(rule["annotations"].values())
    used = set(re.findall(r"\$labels\.(\w+)", told))
    assert used <= {label for name in NAME.findall(rule["expr"]) for label in DEFINITIONS[metric_of(name)].labels}
    # The commands that it names are there.
    for command in re.findall(r"`mainspring ([a-z-]+)", told):
        assert commands.get_command(None, command) is not None, command  # pyright: ignore[reportArgumentType]  it asks nothing of it


def test_every_alarm_that_was_promised_is_there() -> None:
    about = " ".join(rule["expr"] for rule in rules())
    for name in (
        "mainspring_instances_overdue",
        "mainspring_timer_lag_seconds_bucket",
        "mainspring_dead_letters_made_total",
        "mainspring_lease_takeovers_total",
        "mainspring_inbox",
        "mainspring_orphans",
        "mainspring_unread",
    ):
        assert name in about


def test_the_page_lists_every_metric_with_its_labels() -> None:
    page = (DOCS / "how-to/observe.md").read_text()
    listed = dict(re.findall(r"^\| `(mainspring_\w+)` \| ([^|]*?) ?\|", page, re.MULTILINE))
    assert listed == {name: ", ".join(definition.labels) for name, definition in DEFINITIONS.items()}

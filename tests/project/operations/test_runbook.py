"""The runbook has a section for each alert, and the pages name metrics that exist."""

from __future__ import annotations

import re

import yaml

from tests.project.newcomer.pages import ROOT

OPERATIONS = ROOT / "docs/operations"
METRIC = re.compile(r"\bmainspring_[a-z_]+\b")


def test_every_alert_has_its_section() -> None:
    groups = yaml.safe_load((OPERATIONS / "alerts.yml").read_text())["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"]]
    sections = re.findall(r"^## (Mainspring\w+)$", (OPERATIONS / "runbook.md").read_text(), re.MULTILINE)

    assert sections == alerts


def test_pages_name_metrics_that_exist() -> None:
    known = set(
        re.findall(r"^\| `(mainspring_[a-z_]+)` \|", (ROOT / "docs/how-to/observe.md").read_text(), re.MULTILINE)
    )
    named = {metric for page in OPERATIONS.glob("*.md") for metric in METRIC.findall(page.read_text())}

    assert named
    assert named <= known

"""What stands on the page about deployment fits the program: commands, routes, and enough time to drain."""

from __future__ import annotations

import configparser
import re
from typing import Any

import yaml
from click.testing import CliRunner

from mainspring import Mainspring
from mainspring.cli.group import commands
from mainspring.engine.engine import DRAIN_SECONDS
from mainspring.web import api
from tests.project.newcomer.pages import ROOT

PAGE = (ROOT / "docs/operations/deploy.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def pods() -> dict[str, Any]:
    documents: list[Any] = list(yaml.safe_load_all(block("yaml")))
    return {document["metadata"]["name"]: document["spec"]["template"]["spec"] for document in documents}


def options_of(arguments: list[str]) -> set[str]:
    return {argument for argument in arguments[1:] if argument.startswith("--")}


def known_options(command: str) -> set[str]:
    return set(re.findall(r"--[a-z-]+", CliRunner().invoke(commands, [command, "--help"]).output))


def test_a_worker_has_longer_to_stop_than_it_drains() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block("ini"))
    stopping = re.findall(r"(?:--time |stop_grace_period: )(\d+)", PAGE)

    assert int(unit["Service"]["TimeoutStopSec"]) > DRAIN_SECONDS
    assert pods()["shop-worker"]["terminationGracePeriodSeconds"] > DRAIN_SECONDS
    assert [seconds for seconds in stopping if int(seconds) <= DRAIN_SECONDS] == []
    assert stopping


def test_probes_ask_routes_that_exist_and_need_no_token() -> None:
    (container,) = pods()["shop-studio"]["containers"]
    routes = api(Mainspring("memory://")).openapi()["paths"]  # type: ignore[attr-defined]

    for probe in ("livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["path"] in routes
        assert {"name": "Host", "value": "localhost"} in asked["httpHeaders"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/api/health", "a database that is away restarts nobody"


def test_commands_and_their_options_exist() -> None:
    unit = re.findall(r"^ExecStart=\S+/mainspring (.+)$", PAGE, re.MULTILINE)[0].split()
    image = re.findall(r'"([^"]+)"', re.findall(r"^CMD (.+)$", PAGE, re.MULTILINE)[0])
    containers = [container["args"] for pod in pods().values() for container in pod["containers"]]

    for arguments in [unit, image, *containers]:
        assert options_of(arguments) <= known_options(arguments[0]), arguments

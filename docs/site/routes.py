"""Every route with what it takes and answers, from the API's own OpenAPI document: for the site's page on HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi.routing import APIRoute

from mainspring import Mainspring
from mainspring.web.api import api, described

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/reference/http.md"
DOCUMENT = PAGE.with_name("openapi.json")


def document() -> dict[str, Any]:
    """Return the OpenAPI document of an app without workflows.

    >>> "/api/health" in document()["paths"]
    True
    """
    return described(api(Mainspring("memory://")))


def listed(routes: Sequence[Any], prefix: str = "") -> list[str]:
    """Return the routes of an app as it serves them, as in `GET /api/timers`: also those that it does not describe."""
    found: list[str] = []
    for route in routes:
        if isinstance(route, APIRoute):
            found += [f"{method} {prefix}{route.path}" for method in sorted(route.methods or ())]
        else:  # what is neither a route nor a router has to be told here what it is
            found += listed(route.original_router.routes, prefix + route.include_context.prefix)
    return found


def written() -> str:
    """Return the document as a file."""
    return json.dumps(document(), indent=1, ensure_ascii=False)


def details() -> str:
    """Return what the site adds to the page on HTTP."""
    parts = [f"## All routes\n\nFrom [the OpenAPI document]({DOCUMENT.name}), as `/api/openapi.json` serves it.\n"]
    for path, methods in document()["paths"].items():
        parts += [_route(f"{method.upper()} {path}", asked) for method, asked in methods.items()]
    return "\n".join(parts)


def _route(title: str, asked: dict[str, Any]) -> str:
    lines = [f"### `{title}`\n", asked.get("description", asked.get("summary", "")), ""]
    rows = [_parameter(parameter) for parameter in asked.get("parameters", ())]
    if rows:
        lines += ["| parameter | in | type | meaning |", "|---|---|---|---|", *rows, ""]
    if body := asked.get("requestBody"):
        lines += [f"Body: {_kinds(body['content'])}.", ""]
    answers = [f"{status}: {_kinds(answer.get('content', {})) or 'nothing'}" for status, answer in _good(asked)]
    problems = [status for status in asked["responses"] if not status.startswith("2")]
    lines.append(f"Answers: {'; '.join(answers)}. Problems: {', '.join(sorted(problems)) or 'none'}.\n")
    return "\n".join(lines)


def _good(asked: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(status, answer) for status, answer in asked["responses"].items() if status.startswith("2")]


def _parameter(parameter: dict[str, Any]) -> str:
    needed = "" if parameter.get("required") else ", optional"
    meaning = parameter.get("description", "").replace("|", "\\|")
    return f"| `{parameter['name']}` | {parameter['in']}{needed} | {_type(parameter.get('schema', {}))} | {meaning} |"


def _kinds(content: dict[str, Any]) -> str:
    kinds = [f"{_type(what.get('schema', {}))} as `{kind}`" for kind, what in content.items()]
    return " or ".join(kinds)


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2].rpartition('__')[2]}`"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"] if one.get("type") != "null"))
    if schema.get("type") == "array":
        return f"a list of {_type(schema.get('items', {}))}"
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    return schema.get("type", "any JSON")

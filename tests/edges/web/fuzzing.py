"""Requests as the OpenAPI document allows them, and as it does not: every answer has to be one that it describes.

`python -m tests.edges.web.fuzzing --examples 300` is the long form.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from mainspring.web.api import api, described
from tests.edges.web.support import counters, served

CHECKED: Final = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# What waits is not to wait long, and what never ends is tested elsewhere.
WAIT: Final = {"wait": 0.01}
ENDLESS: Final = frozenset({"/api/live"})
# Of what there is: nobody guesses the id of an instance.
KNOWN: Final[dict[str, Any]] = {
    "workflow": ["Counter", "LeaveRequests"],
    "id": ["c-1", "c-2", "l-1", "LeaveRequests/l-1/3", "1", "2"],
    "type": ["Count", "RequestLeave"],
    "name": ["Counter", "nightly"],
}
SECONDS: Final = 120.0


class Serving:
    """An app with something of everything in it, asked in a loop of its own."""

    def __init__(self, folder: Path) -> None:
        self._app = counters(folder)
        self.document = described(api(self._app))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._client: httpx.AsyncClient | None = None
        self._opened = served(self._app)
        self.statuses: Counter[int] = Counter()

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._fill())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._opened.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _fill(self) -> None:
        client = self._client = await self._opened.__aenter__()
        for counter in ["c-1", "c-1", "c-2", *["c-3"] * 5]:
            await client.post("/api/messages/Count", json={"counter": counter})
        await client.post("/api/messages/RequestLeave", json={"leave_id": "l-1"})
        await client.post("/api/operations/suspend/Counter/c-2")

    def ask(self, request: dict[str, Any]) -> httpx.Response:
        client = self._client
        assert client is not None
        made = client.build_request(**_for_httpx(request))
        answer: httpx.Response = self._run(client.send(made))
        self.statuses[answer.status_code] += 1
        return answer

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)


def _for_httpx(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request as httpx takes it."""
    body = request.get("data")
    kept = {name: request[name] for name in ("method", "url", "headers", "params", "cookies") if request.get(name)}
    kept["headers"] = {name: str(value) for name, value in (kept.get("headers") or {}).items()}
    if "json" in request:
        return kept | {"json": request["json"]}
    return kept | ({"content": body} if isinstance(body, str | bytes) else {})


@contextmanager
def serving() -> Generator[Serving]:
    with tempfile.TemporaryDirectory() as folder, Serving(Path(folder)) as made:
        yield made


def operations(document: dict[str, Any]) -> list[Any]:
    """Return what can be asked for."""
    schema = schemathesis.openapi.from_dict(document)
    results: list[Any] = list(schema.get_all_operations())
    found = [result.ok() for result in results]
    return [operation for operation in found if operation.path not in ENDLESS]


def modes(operation: Any) -> list[GenerationMode]:
    """Return how an operation can be asked: what takes nothing but a path cannot be asked wrongly."""
    narrow = bool(operation.query) or bool(operation.body)
    return [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if narrow else [])]


def fuzz(serving: Serving, operation: Any, examples: int, mode: GenerationMode) -> None:
    """Ask one operation in many ways."""
    ask_one = _asking(serving)
    strategy = operation.as_strategy(generation_mode=mode)
    known = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in KNOWN.items()})
    run = given(case=strategy, known=known, use=st.booleans())(ask_one)
    asked = settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )(run)
    try:
        asked()
    except Unsatisfiable:
        # There is no wrong way to ask for what may be anything.
        assert mode is GenerationMode.NEGATIVE, operation.label


def _asking(serving: Serving) -> Callable[..., None]:
    def ask_one(case: Any, known: dict[str, Any], use: bool) -> None:
        if use:
            case.path_parameters = {
                **(case.path_parameters or {}),
                **{name: known[name] for name in case.path_parameters or {} if name in known},
            }
        if "wait" in {parameter.name for parameter in case.operation.query}:
            case.query = {**(case.query or {}), **WAIT}
        answer = serving.ask(case.as_transport_kwargs(base_url="http://localhost"))
        # What waits in vain, or finds no room, says so by other statuses, which the document has to name.
        assert answer.status_code != 500, f"{case.as_curl_command()}: {answer.text}"
        case.validate_response(answer, checks=CHECKED)

    return ask_one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=100)
    examples = parser.parse_args().examples
    with serving() as made:
        found = operations(made.document)
        for operation in found:
            for mode in modes(operation):
                fuzz(made, operation, examples, mode)
        told = ", ".join(f"{count:,} times {status}" for status, count in sorted(made.statuses.items()))
        asked = made.statuses.total()
    sys.stdout.write(f"## HTTP against its description\n\n{asked:,} requests, {len(found)} operations: {told}.\n")


if __name__ == "__main__":
    main()

"""Every place in the source where bytes become values, each with the readers that feed it, or why none does."""

from __future__ import annotations

import ast
from collections.abc import Generator
from typing import Final

from tests.support.paths import ROOT

SOURCE: Final = ROOT / "src/mainspring"
LIBRARIES: Final = frozenset({"json", "msgpack", "tomllib"})
CALLS: Final = frozenset({"decode", "loads", "load", "Decoder"})


def decoders() -> set[str]:
    """Return them as `module:function`, without a function where one is made for the module."""
    found: set[str] = set()
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).with_suffix("").as_posix()
        found |= {f"{module}:{inside}" for inside in calls(ast.parse(path.read_text()), "")}
    return found


def calls(node: ast.AST, inside: str) -> Generator[str]:
    """Give the name of the function around each call of a decoder."""
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.Call | ast.Attribute) and _decodes(child):
            yield inside
        yield from calls(child, child.name if named else inside)


def _decodes(node: ast.AST) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Name):
        return function.id == "convert"
    if not isinstance(function, ast.Attribute) or function.attr not in CALLS:
        return False
    library = function.value
    name = library.attr if isinstance(library, ast.Attribute) else getattr(library, "id", "")
    return name in LIBRARIES


FED: Final[dict[str, tuple[str, ...]]] = {
    "analysis/export/stream_file:": ("export-file", "export-file-checked", "export-file-compressed"),
    "app/histories:read_histories": ("histories-file",),
    "app/histories:_state_lines": ("histories-file-held",),
    "app/hooks:_messages": ("webhook-payload",),
    "app/signatures:_event_id": ("webhook-signature",),
    "app/undelivered:": ("undelivered",),
    "brokers/nats_publishing:": ("nats-answer",),
    "brokers/routing:read": ("routing-table",),
    "brokers/routing:_toml": ("routing-table",),
    "codec/entries:": ("message", "message-of-all-kinds", "message-stored"),
    "codec/entries:_plain_decoder": ("message", "message-of-all-kinds", "message-stored"),
    "codec/shapes:read": ("message-of-all-kinds", "message-stored"),
    "codec/shapes:as_object": ("message-of-all-kinds", "message-stored"),
    "codec/strict:scan": ("message", "message-of-all-kinds", "webhook-payload"),
    "brokers/sqs_subscription:_together": ("broker-sqs",),
    "codec/wire:": ("envelope", "envelopes"),
    "codec/wire:read_attributes": ("broker-kafka", "broker-nats", "broker-rabbitmq", "broker-redis"),
    "codec/wire:read_envelopes": ("envelopes", "remote-answer"),
    "engine/fleet/knowledge:read": ("knowledge",),
    "engine/fleet/standing:read": ("standing",),
    "engine/outputs/replies:": ("reply-kept",),
    "engine/recording/event_details:": ("detail",),
    "engine/recording/stored_values:": ("context", "posted"),
    "remote/client:_said": ("remote-answer",),
    "stores/commit/task_rows:": ("task-row",),
    "stores/sealed/files:opened": ("export-file-sealed",),
}
"""What reads bytes from outside, or rows that are read before anything has vouched for them."""

STORED: Final = "a body as it was stored, read by the codec before or shown only; the row bears a checksum"
OWN: Final = "bytes that this release has just written itself"
OTHER_PROCESS: Final = "what two processes of one command tell each other; old code can do worse than write bytes"
NOT_FED: Final[dict[str, str]] = {
    "analysis/export/redaction:body": STORED,
    "analysis/export/redaction:restored": "a correction that came over HTTP as JSON (http-body), and a stored body",
    "analysis/export/event_logs:scalars": STORED,
    "analysis/replay/documents:state_changed": OWN,
    "analysis/stuck/awaited:_counted": STORED,
    "analysis/what_if/contrast:as_today": STORED,
    "analysis/what_if/old_code:__init__": OTHER_PROCESS,
    "analysis/what_if/old_process:main": OTHER_PROCESS,
    "app/task_views:": STORED,
    "brokers/source:paused": STORED,
    "cli/tasks:_filled_in": "an argument of whoever gives the command",
    "codec/wire:schema": "a file of the package",
    "engine/inputs/pending:envelope": STORED,
    "engine/outputs/settlements:_with_command": STORED,
    "engine/recording/walk:of": STORED,
    "stores/sealed/errors:opened_error": "what a seal has opened, and so vouched for",
    "testing/envelopes:data_of": OWN,
    "web/messages:_result": OWN,
    "web/served:body": STORED,
}

"""What two standards ask of a log, written down from them: IEEE 1849-2016 (its XML schema), OCEL 2.0 (its JSON schema).

Neither schema may be copied here. So each rule of theirs is a line below, and beyond them what their texts ask for:
keys of a classifier are global attributes, prefixes are declared, names refer to what there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from msgspec import Struct, json

NAME: Final = re.compile(r"[A-Za-z_:][\w.\-:]*")
NC_NAME: Final = re.compile(r"[A-Za-z_][\w.\-]*")
DATE_TIME: Final = re.compile(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
LIFECYCLE: Final = {
    "schedule",
    "assign",
    "withdraw",
    "reassign",
    "start",
    "suspend",
    "resume",
    "pi_abort",
    "ate_abort",
    "complete",
    "autoskip",
    "manualskip",
    "unknown",
}
VALUES: Final = {
    "string": lambda _: True,
    "date": DATE_TIME.fullmatch,
    "int": lambda text: re.fullmatch(r"[+-]?\d+", text) and -(2**63) <= int(text) < 2**63,
    "float": lambda text: re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?INF|NaN", text),
    "boolean": lambda text: text in {"true", "false", "0", "1"},
    "id": lambda _: True,
}
ORDER: Final = ("extension", "global", "classifier", "attribute", "trace", "event")


def read_xes(path: Path) -> ET.Element:
    """Return a log that is as the standard asks; else fail with what is wrong."""
    log = ET.parse(path).getroot()  # noqa: S314  our own file
    assert list(xes_faults(log)) == []
    return log


def xes_faults(log: ET.Element) -> Iterator[str]:
    if log.tag != "log" or not re.fullmatch(r"\d+(\.\d+)?", log.get("xes.version", "")):
        yield f"a log without a version: {log.tag} {log.attrib}"
    if extra := set(log.attrib) - {"xes.version", "xes.features"}:
        yield f"a log has no {extra}"
    places = [ORDER.index("attribute" if child.tag in VALUES else child.tag) for child in log]
    if places != sorted(places):
        yield "extensions, globals, classifiers, attributes and traces come in this order"
    for extension in log.iter("extension"):
        yield from _attributes(extension, {"name": NC_NAME, "prefix": NC_NAME, "uri": re.compile(r"\S+")})
    prefixes = {extension.get("prefix", "") for extension in log.iter("extension")}
    yield from _classifiers(log)
    for scope in log.iter("global"):
        if scope.get("scope") not in {"trace", "event"} or set(scope.attrib) != {"scope"}:
            yield f"a global of {scope.attrib}"
        yield from _valued(scope, prefixes)
    yield from _valued(log, prefixes, {"extension", "global", "classifier", "trace"})
    for trace in log.iter("trace"):
        tags = [child.tag == "event" for child in trace]
        if tags != sorted(tags):
            yield "attributes of a trace come before its events"
        yield from _valued(trace, prefixes, {"event"})
        yield from _global(log, trace, "trace")
    for event in log.iter("event"):
        yield from _valued(event, prefixes)
        yield from _global(log, event, "event")
        transitions = [child.get("value") for child in event if child.get("key") == "lifecycle:transition"]
        if not set(transitions) <= LIFECYCLE:
            yield f"no such transition: {transitions}"


def _classifiers(log: ET.Element) -> Iterator[str]:
    for classifier in log.iter("classifier"):
        yield from _attributes(classifier, {"name": NC_NAME, "scope": NC_NAME, "keys": re.compile(r"\S+( \S+)*")})
        if missing := set(classifier.get("keys", "").split()) - _globals(log, classifier.get("scope", "event")):
            yield f"keys of a classifier that are not global: {missing}"


def _globals(log: ET.Element, scope: str) -> set[str]:
    return {child.get("key", "") for each in log.iter("global") if each.get("scope") == scope for child in each}


def _global(log: ET.Element, element: ET.Element, scope: str) -> Iterator[str]:
    if missing := _globals(log, scope) - {child.get("key") for child in element}:
        yield f"a {scope} without its global {missing}"


def _attributes(element: ET.Element, patterns: dict[str, re.Pattern[str]]) -> Iterator[str]:
    for name, value in element.attrib.items():
        if name not in patterns or not patterns[name].fullmatch(value):
            yield f"{element.tag} has {name}={value!r}"
    if len(element):
        yield f"{element.tag} has children"


def _valued(element: ET.Element, prefixes: set[str], beside: set[str] | None = None) -> Iterator[str]:
    if (element.text or "").strip():
        yield f"text in {element.tag}"
    keys: list[str] = []
    for child in element:
        if child.tag in (beside or set()):
            continue
        key, value = child.get("key", ""), child.get("value")
        keys.append(key)
        if child.tag not in VALUES or value is None or not VALUES[child.tag](value):
            yield f"{child.tag} {key} is {value!r}"
        if not NAME.fullmatch(key) or (":" in key and key.partition(":")[0] not in prefixes):
            yield f"a key {key!r}"
        if set(child.attrib) != {"key", "value"} or len(child):
            yield f"{child.tag} {key} says more than its value"
    if len(set(keys)) < len(keys):
        yield f"keys that stand twice: {keys}"


# ---- OCEL 2.0: types and names as its JSON schema has them; what it does not know is refused


class Declared(Struct, forbid_unknown_fields=True):
    name: str
    type: str


class Type(Struct, forbid_unknown_fields=True):
    name: str
    attributes: list[Declared]


class Value(Struct, forbid_unknown_fields=True):
    name: str
    value: str


class TimedValue(Struct, forbid_unknown_fields=True):
    name: str
    value: str
    time: datetime


class Relationship(Struct, forbid_unknown_fields=True, rename="camel"):
    object_id: str
    qualifier: str


class OcelEvent(Struct, forbid_unknown_fields=True):
    id: str
    type: str
    time: datetime
    attributes: list[Value] = []
    relationships: list[Relationship] = []


class OcelObject(Struct, forbid_unknown_fields=True):
    id: str
    type: str
    attributes: list[TimedValue] = []
    relationships: list[Relationship] = []


class Ocel(Struct, forbid_unknown_fields=True, rename="camel"):
    event_types: list[Type]
    object_types: list[Type]
    events: list[OcelEvent]
    objects: list[OcelObject]


def read_ocel(path: Path) -> Ocel:
    """Return a log that is as the standard asks; else fail with what is wrong."""
    log = json.decode(path.read_bytes(), type=Ocel)
    assert list(ocel_faults(log)) == []
    return log


def ocel_faults(log: Ocel) -> Iterator[str]:
    known = {each.id for each in log.objects}
    if len(known) < len(log.objects) or len({each.id for each in log.events}) < len(log.events):
        yield "an id stands twice"
    for types, things in ((log.event_types, log.events), (log.object_types, log.objects)):
        declared = {each.name: {attribute.name for attribute in each.attributes} for each in types}
        if len(declared) < len(types):
            yield "a type stands twice"
        if strange := {a.type for each in types for a in each.attributes} - {
            "string",
            "time",
            "integer",
            "float",
            "boolean",
        }:
            yield f"no such type of an attribute: {strange}"
        for thing in things:
            if not {attribute.name for attribute in thing.attributes} <= declared.get(thing.type, set()):
                yield f"{thing.id} has attributes that its type {thing.type} does not declare"
            for relationship in thing.relationships:
                if relationship.object_id not in known:
                    yield f"{thing.id} is related to {relationship.object_id}, which is no object"

"""Conditional requests (RFC 9110): an instance's position is its ETag, and If-Match asks for it where one sends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, TypedDict

from fastapi import Depends, Header, Query
from fastapi.routing import APIRoute

from mainspring.errors import SettingError

_TAG: Final = re.compile(r'"(0|[1-9][0-9]{0,17})"', re.ASCII)

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
CONDITIONS: Final = ("If-Match", "If-None-Match", "If-Unmodified-Since")

# How OpenAPI describes an answer that has it.
ETAG: Final[dict[str, Any]] = {
    "ETag": {
        "description": "The position at which the stream ends, for If-Match.",
        "schema": {"type": "string", "examples": ['"7"']},
    }
}


class Condition(TypedDict):
    """What the instance must be like that a message goes to, and of which workflow, where several take it."""

    must_exist: bool
    expected_position: int | None
    workflow: str | None


def etag(position: int) -> dict[str, str]:
    """Return the header that says at which position something was read.

    >>> etag(7)
    {'etag': '"7"'}
    """
    return {"etag": f'"{position}"'}


def condition(if_match: str | None, must_exist: bool, workflow: str | None = None) -> Condition:
    """Return what a request asks of the instance; any position will do for `*`.

    >>> condition('"7"', False)
    {'must_exist': False, 'expected_position': 7, 'workflow': None}
    >>> condition('W/"7"', False)
    Traceback (most recent call last):
    mainspring.errors.running.SettingError: If-Match is 'W/"7"'. Use one ETag as it was given, or *; no weak one.
    """
    if if_match is None or if_match.strip() == "*":
        must_exist = must_exist or if_match is not None
        return Condition(must_exist=must_exist, expected_position=None, workflow=workflow)
    found = _TAG.fullmatch(if_match.strip())
    if found is None:
        fix = "Use one ETag as it was given, or *; no weak one."
        raise SettingError("If-Match", if_match, fix)
    return Condition(must_exist=must_exist, expected_position=int(found[1]), workflow=workflow)


async def _condition(
    if_match: Annotated[
        str | None,
        Header(
            description="The ETag of the instance as it was read, or * for any: taken only if it is there still.",
            examples=['"7"'],
        ),
    ] = None,
    must_exist: Annotated[
        bool, Query(description="Begin no instance, and keep no dead letter: 404 where there is none.")
    ] = False,
    workflow: Annotated[
        str | None, Query(description="The workflow that is meant, where several take the message.")
    ] = None,
) -> Condition:
    return condition(if_match, must_exist, workflow)


Conditions = Annotated[Condition, Depends(_condition)]


def unknown_conditions(route: APIRoute) -> tuple[str, ...]:
    """Return the conditions that a route which changes something does not judge."""
    if SAFE.issuperset(route.methods or ()):
        return ()
    judged = any(each.call is _condition for each in route.dependant.dependencies)
    return CONDITIONS[1:] if judged else CONDITIONS


def refuse_conditions(headers: Mapping[str, str], unknown: Iterable[str]) -> None:
    """Refuse a request with a condition that would not be judged: its sender would believe that it was.

    >>> refuse_conditions({"If-Match": '"7"'}, CONDITIONS)
    Traceback (most recent call last):
    mainspring.errors.running.SettingError: If-Match is '"7"'. This route judges no such condition: leave it out.
    """
    for name in unknown:
        if name in headers:
            raise SettingError(name, headers[name], "This route judges no such condition: leave it out.")

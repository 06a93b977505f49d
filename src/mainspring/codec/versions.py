"""Older versions of a body: one pure function a version, from one JSON object to the next."""

from __future__ import annotations

from typing import Any

from mainspring.core.messages import MessageType
from mainspring.errors import DecodeError, NewerTypeError, UnknownTypeError, shown


def upcast(declared: MessageType, version: Any, body: Any) -> Any:
    """Return the body as the newest version of its type has it.

    >>> order = MessageType("Order", 2, upcasters=(lambda body: body | {"currency": "EUR"},))
    >>> upcast(order, 1, {"id": "o-1"})
    {'id': 'o-1', 'currency': 'EUR'}
    """
    if version == declared.version:
        return body
    check_version(declared, version)
    for number, upcaster in enumerate(declared.upcasters[version - 1 :], start=version):
        try:
            body = upcaster(body)
        except Exception as error:
            raise DecodeError(
                declared.name,
                f"the upcaster from version {number} to {number + 1} failed on {shown(body, 200)}: {error!r}",
                "Let it take every body of that version.",
            ) from error
    return body


def check_version(declared: MessageType, version: Any) -> None:
    """Raise an UnknownTypeError unless the version is one that the type has or had; NewerTypeError for a later one.

    >>> check_version(MessageType("Order"), 2)
    Traceback (most recent call last):
    mainspring.errors.encoding.NewerTypeError: Order: is stored at version 2, and only versions up to 1 are known \
here. Upgrade this worker to the code that wrote it.
    """
    if type(version) is not int or version < 1:
        raise UnknownTypeError(
            declared.name, f"has no version {shown(version, 40)}", f"Use a whole number from 1 to {declared.version}."
        )
    if version > declared.version:
        raise NewerTypeError(
            declared.name,
            f"is stored at version {version}, and only versions up to {declared.version} are known here",
            "Upgrade this worker to the code that wrote it.",
        )

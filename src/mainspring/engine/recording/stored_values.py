"""Stored values: what small parts of rows say, and how they are written: contexts, kinds, times, identities."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import json

from mainspring.core.messages import InstanceId, Kind
from mainspring.errors import DamagedRecordError, shown
from mainspring.errors.reading import UNREADABLE
from mainspring.port.records import Context

MICROSECOND: Final = timedelta(microseconds=1)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_decode_context = json.Decoder(Context).decode
encode_context = json.Encoder().encode


def read_context(body: bytes) -> Context:
    """Return a stored context.

    >>> read_context(b'{"correlation_id":"c-1"}').correlation_id
    'c-1'
    """
    try:
        return _decode_context(body)
    except UNREADABLE as error:
        raise DamagedRecordError("context", f"{shown(body, 80)}: {error}") from error


def read_kind(kind: str) -> Kind:
    """Return a stored kind.

    >>> read_kind("command").value
    'command'
    """
    try:
        return Kind(kind)
    except ValueError as error:
        raise DamagedRecordError("kind", shown(kind, 80)) from error


def moment(time_us: int) -> datetime:
    """Return a stored time as a datetime.

    >>> moment(1_000_000).isoformat()
    '1970-01-01T00:00:01+00:00'
    """
    try:
        return EPOCH + timedelta(microseconds=time_us)
    except OverflowError as error:
        raise DamagedRecordError("time", f"{time_us} microseconds") from error


def nearest_moment(time_us: int) -> datetime:
    """Return a stored time as a datetime, or the first or last one that there is: figures outlive one damaged row.

    >>> nearest_moment(-(2**63)).year, nearest_moment(2**63).year
    (1, 9999)
    """
    try:
        return moment(time_us)
    except DamagedRecordError:
        return _FIRST if time_us < 0 else _LAST


def time_us_of(moment: datetime) -> int:
    """Return a moment as it is stored: exactly, however far away it is.

    >>> time_us_of(datetime(3000, 1, 1, microsecond=1, tzinfo=UTC))
    32503680000000001
    """
    return (moment - EPOCH) // MICROSECOND


def instance_id(text: str) -> InstanceId:
    """Return `workflow/id` as an identity. The workflow's name holds no slash; the id may.

    >>> instance_id("OrderFulfilment/o/1").id
    'o/1'
    """
    workflow, _, id = text.partition("/")
    return InstanceId(workflow, id)

"""A trace context as text: what stands in an envelope's `trace`, and what brokers and HTTP carry as two headers.

W3C Trace Context: https://www.w3.org/TR/trace-context/. The text is a `traceparent`, and where there is a `tracestate`,
a semicolon and that. It flows along with messages whether or not anything is traced here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

TRACESTATE_CHARACTERS: Final = 512

_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_NO_TRACE: Final = "0" * 32
_NO_SPAN: Final = "0" * 16


def trace_of(headers: Mapping[str, str]) -> str | None:
    """Return the trace that headers (their names in lower case) name; None where they name none, or a malformed one.

    A `tracestate` that is too long or cannot be one is left out: without it the trace is still whole.

    >>> trace_of({"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "a=1"})
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01;a=1'
    >>> trace_of({"traceparent": "none"}) is None
    True
    """
    found = _TRACEPARENT.fullmatch(headers.get("traceparent", "").strip(" \t"))
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    # What a later version says beside these is not known here, and so not passed on.
    traceparent = f"00-{trace_id}-{span_id}-{flags}"
    tracestate = headers.get("tracestate", "").strip(" \t")
    if not 0 < len(tracestate) <= TRACESTATE_CHARACTERS or not (tracestate.isascii() and tracestate.isprintable()):
        return traceparent
    return f"{traceparent};{tracestate}"


def headers_of(trace: str | None) -> dict[str, str]:
    """Return the headers of a trace; none where there is no trace, or none that could be understood.

    >>> headers_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01;a=1")["tracestate"]
    'a=1'
    >>> headers_of(None), headers_of("of another kind")
    ({}, {})
    """
    if trace is None:
        return {}
    traceparent, _, tracestate = trace.partition(";")
    if trace_of({"traceparent": traceparent}) is None:
        return {}
    return {"traceparent": traceparent, "tracestate": tracestate} if tracestate else {"traceparent": traceparent}


def trace_id_of(trace: str | None) -> str | None:
    """Return the id of a trace, by which tools find it.

    >>> trace_id_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01;a=1")
    '4bf92f3577b34da6a3ce929d0e0e4736'
    """
    traceparent = headers_of(trace).get("traceparent")
    return None if traceparent is None else traceparent[3:35]

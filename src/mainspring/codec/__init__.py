"""The codec: values to JSON bytes and back, the same value or a clear refusal.

    limits      how large, how deep, how long
    registry    Codec: a name for each type, encode, decode
    entries     what is prepared once for each type
    compiler    type hints → shape (hints reads the classes)
    shapes      what msgspec cannot do alone: sets in a fixed order, unions of dataclasses
    leaves      what a value without parts must be
    checks      the shape as one generated function: True if a value will come back
    sameness    the proof by reading back, for classes that compute something when they are made
    models      pydantic
    naming      under which names the fields of a type are known, in code and in what is stored
    versions    upcasters
    strict      the scan of bytes from outside
    wire        the envelope in which messages travel to other services and back, and its JSON Schema

The stored form of a value is the name and the version of its type beside the exact JSON bytes of its body. Inside a
body, a member of a union of classes has its name under "$type", and a class of version 2 or more its version under
"$version". Names are looked up in what was registered; nothing that is named in data is ever imported or executed.

A datetime comes back at the same moment with the same offset; the name of its zone is not kept.
"""

from mainspring.codec.limits import BODY_LIMIT_BYTES, STATE_LIMIT_BYTES
from mainspring.codec.registry import Codec, Encoded

__all__ = ["BODY_LIMIT_BYTES", "STATE_LIMIT_BYTES", "Codec", "Encoded"]

"""An entry: everything needed to write and read one type, prepared once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Struct, json

from mainspring.codec.checks import Check, compile_check, find_fault
from mainspring.codec.compiler import Compiled, Proof, compile_type
from mainspring.codec.limits import NESTING_LEVELS
from mainspring.codec.sameness import difference
from mainspring.codec.shapes import Model, Shape
from mainspring.codec.strict import holds_nul, nesting_of
from mainspring.codec.versions import upcast
from mainspring.core.messages import MessageType, type_of
from mainspring.errors import CodecError, DecodeError, EncodeError, RegistrationError
from mainspring.errors.reading import UNREADABLE

ENTRY_ATTRIBUTE: Final = "__mainspring_entry__"

_encode = json.Encoder().encode
_decode = json.Decoder().decode


class Entry(Struct, frozen=True):
    """A registered type: `encode` and `decode` are for its newest version, `decode_older` for the others.

    >>> entry_for(int).encode(3)
    b'3'
    """

    cls: type[Any]
    declared: MessageType
    name: str
    version: int
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    decode_older: Callable[[Any, bytes], Any]


def entry_for(cls: type[Any]) -> Entry:
    """Return the entry for a type, or raise a RegistrationError.

    The class keeps it: a test suite makes an app for every test, and reading the types is most of that.

    >>> entry_for(int).name
    'int'
    """
    declared = type_of(cls)
    known: Entry | None = cls.__dict__.get(ENTRY_ATTRIBUTE)
    if known is not None and known.cls is cls and known.declared == declared:
        return known
    compiled = compile_type(cls)
    check = compile_check(compiled.shape)
    decode = _decoder(declared.name, cls, compiled.shape)
    entry = Entry(
        cls=cls,
        declared=declared,
        name=declared.name,
        version=declared.version,
        encode=_encoder(declared.name, compiled, check, decode),
        decode=decode,
        decode_older=_older_decoder(declared, decode),
    )
    with suppress(TypeError):  # what Python brings along takes no attributes
        setattr(cls, ENTRY_ATTRIBUTE, entry)
    return entry


def _encoder(name: str, compiled: Compiled, check: Check, decode: Callable[[bytes], Any]) -> Callable[[Any], bytes]:
    shape = compiled.shape
    write = _chained(shape.write, _encode) if shape.writes else _encode
    prove = _prover(name, compiled, write, decode)

    def encode(value: Any) -> bytes:
        try:
            if not check(value):
                _refuse(name, shape, value)
            body = write(value)
        except CodecError:
            raise
        except Exception as error:
            raise _told(name, error) from error
        if b"\\" in body and holds_nul(body):
            raise EncodeError(name, "has a NUL character in a text", "Remove it; databases cannot hold it.")
        if prove is not None:
            prove(value, body)
        return body

    return encode


def _refuse(name: str, shape: Shape, value: Any) -> NoReturn:
    raise EncodeError(name, *find_fault(shape, value))


def _chained(first: Callable[[Any], Any], then: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    return lambda value: then(first(value))


def _prover(
    name: str, compiled: Compiled, write: Callable[[Any], bytes], decode: Callable[[bytes], Any]
) -> Callable[[Any, bytes], None] | None:
    """Return what is still to be shown of a body when the check passed, if anything is."""
    if compiled.proof is Proof.CHECK and compiled.bounded:
        return None

    def prove(value: Any, body: bytes) -> None:
        if not compiled.bounded and nesting_of(body) > NESTING_LEVELS:
            raise _told(name, RecursionError())
        if compiled.proof is not Proof.CHECK:
            prove_by_reading(value, body)

    def prove_by_reading(value: Any, body: bytes) -> None:
        try:
            again = decode(body)
        except DecodeError as error:
            raise EncodeError(name, f"could not be read back: {error.problem}", "Correct the value.") from error
        if compiled.proof is Proof.BYTES and write(again) == body:
            return
        problem = difference(value, again)
        if problem is not None:
            raise EncodeError(name, problem, "Let the class keep what it is given; compute the rest in properties.")

    return prove


def _told(name: str, error: Exception) -> EncodeError:
    match error:
        case RecursionError():
            return EncodeError(
                name, f"nests deeper than {NESTING_LEVELS} levels", "Keep references by id instead of whole objects."
            )
        case UnicodeEncodeError():
            return EncodeError(name, f"has half a character in a text ({error})", "Use whole characters.")
        case AttributeError():
            return EncodeError(name, f"lacks a field ({error})", "Give every field a value.")
        case _:
            return EncodeError(name, f"cannot be written: {error!r}", "Correct the value.")


def _decoder(name: str, cls: type[Any], shape: Shape) -> Callable[[bytes], Any]:
    if isinstance(shape, Model):
        read: Callable[[bytes], Any] = shape.load
    elif shape.reads:
        read = _chained_read(shape)
    else:
        read = _plain_decoder(name, cls)

    def decode(body: bytes) -> Any:
        try:
            return read(body)
        except CodecError:
            raise
        except msgspec.DecodeError as error:
            raise DecodeError(
                name, f"the body does not fit: {error}", "Correct the data, or add an upcaster."
            ) from None
        except UnicodeDecodeError as error:
            raise DecodeError(name, f"the body is not UTF-8 ({error})", "Send JSON in UTF-8.") from None
        except RecursionError:
            raise DecodeError(
                name, f"the body nests deeper than {NESTING_LEVELS} levels", "Send flatter data."
            ) from None
        except Exception as error:
            # A class may refuse its fields with whatever error it likes.
            raise DecodeError(name, f"the body does not fit: {error}", "Correct the data.") from error

    return decode


def _chained_read(shape: Shape) -> Callable[[bytes], Any]:
    read = shape.read
    return lambda body: read(_decode(body))


def _plain_decoder(name: str, cls: type[Any]) -> Callable[[bytes], Any]:
    try:
        return json.Decoder(cls).decode
    except (TypeError, ValueError) as error:
        raise RegistrationError(name, f"msgspec cannot read it back: {error}", "Change the field's type.") from error


def _older_decoder(declared: MessageType, decode: Callable[[bytes], Any]) -> Callable[[Any, bytes], Any]:
    def decode_older(version: Any, body: bytes) -> Any:
        try:
            plain = _decode(body)
        except UNREADABLE as error:
            raise DecodeError(declared.name, f"the body is not JSON ({error})", "Correct the data.") from None
        upcasted = upcast(declared, version, plain)
        try:
            return decode(_encode(upcasted))
        except (TypeError, UnicodeEncodeError, RecursionError) as error:
            raise DecodeError(
                declared.name,
                f"its upcasters made something that is not JSON ({error})",
                "Return JSON values from them.",
            ) from error

    return decode_older

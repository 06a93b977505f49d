"""Where data and types do not fit together."""

from __future__ import annotations

from mainspring.errors.base import MainspringError


class CodecError(MainspringError):
    """Data and types do not fit together.

    `type_name` says which type, `problem` what is wrong, `fix` what to do.
    """

    def __init__(self, type_name: str, problem: str, fix: str) -> None:
        self.type_name = type_name
        self.problem = problem
        self.fix = fix
        super().__init__(f"{type_name}: {problem}. {fix}")


class RegistrationError(CodecError):
    """A type that could not be stored and read back faithfully."""


class UnknownTypeError(CodecError):
    """A type name, or a version of it, that nobody registered."""


class EncodeError(CodecError):
    """A value that would not come back from its bytes as it was."""


class DecodeError(CodecError):
    """Bytes that are not what their type says."""


class BodyTooLargeError(CodecError):
    """A body over its limit."""

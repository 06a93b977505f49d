"""Where data and types do not fit together."""

from __future__ import annotations

from typing import Final

from mainspring.errors.base import MainspringError

# Stands before the name of a type whose body was erased.
ERASED_TYPE: Final = "erased:"


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
    """A type name, or a version of it, that is not registered."""


class NewerTypeError(UnknownTypeError):
    """A stored type, or a version of it, that only other code knows: a worker leaves it to those who do.

    >>> error = NewerTypeError("Charge", "is stored at version 2, and only versions up to 1 are known here", "Upgrade.")
    >>> isinstance(error, UnknownTypeError)
    True
    """


class EncodeError(CodecError):
    """A value that would not come back from its bytes as it was."""


class DecodeError(CodecError):
    """Bytes that are not what their type says."""


class BodyTooLargeError(CodecError):
    """A body over its limit."""


class ErasedError(CodecError):
    """A body whose key was destroyed, so that it cannot be read any more.

    >>> str(ErasedError("PlaceOrder"))
    'PlaceOrder: its body was erased. Nothing brings it back; end the instance if it is still running.'
    """

    def __init__(self, type_name: str) -> None:
        super().__init__(
            type_name, "its body was erased", "Nothing brings it back; end the instance if it is still running."
        )

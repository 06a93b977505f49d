"""How a flow ends otherwise than by returning, and how what it awaits fails."""

from __future__ import annotations

from typing import Any, Final, NoReturn

_NO_MORE: Final = "DoNotRetryError: "


class Failure(Exception):  # noqa: N818  raised by authors as a word of the style
    """Raise it to end a flow badly: the instance fails with this reason, and nothing is undone.

    >>> raise Failure("out of stock")
    Traceback (most recent call last):
    mainspring.flows.ends.Failure: out of stock
    """


class Undo(Exception):  # noqa: N818  as above
    """Raise it to undo what was done, the latest first, and to fail with this reason.

    >>> raise Undo("not confirmed")
    Traceback (most recent call last):
    mainspring.flows.ends.Undo: not confirmed
    """


class StepFailed(Exception):  # noqa: N818  as above
    """A step, a command or a child that was awaited has failed for good. Not caught, it undoes what was done.

    `name` is the step's, `error` what was said of it, `attempts` how often it was tried; `definite` says that it
    certainly did not happen.

    >>> str(StepFailed("charge", "ConnectionError: refused", 5))
    'charge failed: ConnectionError: refused'
    """

    def __init__(self, name: str, error: str, attempts: int = 1, *, definite: bool = False) -> None:
        super().__init__(f"{name} failed: {error}")
        self.name = name
        self.error = error
        self.attempts = attempts
        self.definite = definite


class Again(BaseException):
    """Raised by `again(…)`."""

    def __init__(self, argument: Any) -> None:
        super().__init__()
        self.argument = argument


class AnswerError(Exception):
    """Carries an error that an await is to raise."""

    def __init__(self, given: BaseException) -> None:
        super().__init__()
        self.given = given


def reason_of(error: BaseException) -> str:
    """Return the reason that is recorded when a flow ends by an error.

    >>> reason_of(Failure("out of stock")), reason_of(Undo())
    ('out of stock', 'Undo')
    """
    name = type(error).__name__
    if not str(error):
        return name
    return f"{name}: {error}" if is_declared(error) else str(error)


def is_declared(error: BaseException) -> bool:
    """Return True for an error that a step declared with `raises`, and that was rebuilt here.

    >>> is_declared(ValueError())
    False
    """
    return getattr(error, "__mainspring_step__", None) is not None


def error_text(text: str) -> str:
    """Return what a handler's error said, without what says that there are no more attempts.

    >>> error_text("DoNotRetryError: CardDeclined: no funds")
    'CardDeclined: no funds'
    """
    return text.removeprefix(_NO_MORE)


def rebuilt(text: str, raises: tuple[type[Exception], ...]) -> Exception | None:
    """Return the error that a step declared and raised, made of its recorded text; None if it is none of them.

    >>> rebuilt("KeyError: 'o-1'", (ValueError, LookupError)) is None
    True
    >>> rebuilt("ValueError: no", (ValueError,))
    ValueError('no')
    """
    name, _, said = text.partition(": ")
    cls = next((each for each in raises if each.__name__ == name), None)
    if cls is None:
        return None
    # Not called: what its own __init__ wants is not known any more. `args` and its text are as they were.
    error = cls.__new__(cls, said)
    error.args = (said,)
    error.__mainspring_step__ = True  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    return error


def again(argument: Any) -> NoReturn:
    """Begin the flow again with another argument, in the same stream: what is recorded before is not run again.

    Messages that came and were not received are kept for it. Open timers are cancelled; answers to what was not awaited
    are passed over.
    """
    raise Again(argument)

"""What a sender says of a message and of itself, checked: a message's id, and the actor's name."""

from __future__ import annotations

from typing import Final

from mainspring.errors import InvalidIdError

MESSAGE_ID_CHARACTERS: Final = 1_000
ACTOR_CHARACTERS: Final = 1_000
# The ideographic space, and the zero-width joiner and non-joiner.
NAME_JOINERS: Final = "\u3000\u200c\u200d"


def checked_message_id(id: object, what: str = "Message id") -> str:
    """Return a message's id as it came, if it can be one.

    >>> checked_message_id("order-1")
    'order-1'
    """
    if not isinstance(id, str) or not 0 < len(id) <= MESSAGE_ID_CHARACTERS or not id.isprintable():
        raise InvalidIdError(
            id, "cannot be stored or shown safely", f"Use 1 to {MESSAGE_ID_CHARACTERS:,} visible characters.", what=what
        )
    return id


def is_name(text: object) -> bool:
    r"""Return True if a text can name a person: visible, and with what names of some languages are joined by.

    >>> is_name("山田\u3000太郎"), is_name("a\nb"), is_name("")
    (True, False, False)
    """
    if not isinstance(text, str) or not 0 < len(text) <= ACTOR_CHARACTERS:
        return False
    return text.isprintable() or all(c.isprintable() or c in NAME_JOINERS for c in text)


def checked_actor(actor: object) -> str | None:
    """Return who acts, if that can be recorded; None says that no actor was named.

    >>> checked_actor("ann")
    'ann'
    """
    if actor is None:
        return None
    if not isinstance(actor, str) or not is_name(actor):
        fix = f"Use 1 to {ACTOR_CHARACTERS:,} visible characters, or None."
        raise InvalidIdError(actor, "cannot be recorded", fix, what="Actor")
    return actor

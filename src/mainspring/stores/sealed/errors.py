"""What an error says, sealed like a body; before it stands its kind, which can be read and searched.

Both stand in the one text that a store keeps of an error. The sealed part is written in signs that no search uses,
one for each byte (braille, of which there are just 256), so that a search meets kinds alone, and no store has to know
that there is a seal. What was written without one is read as it is.
"""

from __future__ import annotations

from typing import Final

from msgspec import json

from mainspring.errors import MainspringError
from mainspring.errors.kinds import UNTOLD, kind_in, kind_of
from mainspring.logs import logger
from mainspring.sealing.seals import ERASED, About, Seal

ERROR_TYPE: Final = "mainspring.Error"
"""As such the texts of errors are known to a seal."""
_MARK: Final = "\u2063"
_SIGNS: Final = 0x2800

_log = logger(__name__)


def closed_error(text: str, about: About, seal: Seal) -> str:
    """Return an error as it is stored. If its text cannot be sealed, its kind is all that is kept of it.

    >>> from mainspring.sealing import Encrypted, StaticKeys
    >>> seal, about = Encrypted(StaticKeys({"2026": bytes(32)})), About("OrderFulfilment", "o-1")
    >>> stored = closed_error("ValueError: 4111 was refused", about, seal)
    >>> stored.startswith("ValueError"), "4111" in stored
    (True, False)
    >>> opened_error(stored, about, seal)
    'ValueError: 4111 was refused'
    """
    kind = kind_in(text)
    try:
        closed = seal.close(json.encode(text), _of_error(about))
    except Exception as error:  # noqa: BLE001  an author's subject may fail in any way, and the instance must not
        _log.error("what an error of %s/%s says is not kept: %s", about.workflow, about.instance, kind_of(error))
        return kind or "not kept"
    return f"{kind}{_MARK}{''.join(chr(_SIGNS + byte) for byte in closed)}"


def opened_error(stored: str, about: About, seal: Seal) -> str:
    """Return what an error says; its kind, where that was erased or cannot be opened."""
    kind, mark, signs = stored.rpartition(_MARK)
    if not mark or not all(_SIGNS <= ord(sign) < _SIGNS + 256 for sign in signs):
        return stored
    try:
        text = seal.open(bytes(ord(sign) - _SIGNS for sign in signs), _of_error(about))
    except MainspringError as error:
        _log.error("what an error says cannot be opened: %s", error)
        return f"{kind}{UNTOLD}cannot be opened)".lstrip()
    return f"{kind}{UNTOLD}was erased)".lstrip() if text == ERASED else json.decode(text, type=str)


def _of_error(about: About) -> About:
    return About(about.workflow, about.instance, ERROR_TYPE)

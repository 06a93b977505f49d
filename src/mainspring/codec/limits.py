"""The codec's limits, by name and unit."""

from __future__ import annotations

from typing import Final

BODY_LIMIT_BYTES: Final = 2 * 1024 * 1024
STATE_LIMIT_BYTES: Final = 8 * 1024 * 1024
WARN_FRACTION: Final = 4
"""A body of a quarter of its limit is logged: 512 KiB of a message, 2 MiB of a state."""

NESTING_LEVELS: Final = 64
INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1
INTEGER_CHARACTERS: Final = 20
"""The sign and digits of the longest integer that fits; what is longer is refused before it is computed."""
SHOWN_CHARACTERS: Final = 200

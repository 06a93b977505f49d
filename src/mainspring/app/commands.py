"""Commands that are suggested: as they can be copied into a shell, whatever an id in them holds."""

from __future__ import annotations

import shlex


def command(*words: object) -> str:
    """Return a command of mainspring, each word quoted where a shell would read more into it.

    >>> command("show", "Orders/o-1")
    '`mainspring show Orders/o-1`'
    >>> command("show", "Orders/o-1; rm -rf ~")
    "`mainspring show 'Orders/o-1; rm -rf ~'`"
    """
    return f"`{shlex.join(('mainspring', *map(str, words)))}`"

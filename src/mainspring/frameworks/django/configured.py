"""The app that Django's settings name."""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from typing import Any, Final, Unpack

from mainspring.app import Mainspring
from mainspring.app.blocking import BlockingApp
from mainspring.app.posting import Posted, PostOptions
from mainspring.core.messages import Message
from mainspring.errors import SettingError
from mainspring.frameworks.process import Running

try:
    from django import conf  # pyright: ignore[reportMissingTypeStubs]  it has none
    from django.db import DEFAULT_DB_ALIAS, connections  # pyright: ignore[reportMissingTypeStubs]  as above
except ModuleNotFoundError as missing:
    raise SettingError("Django", "not installed", "Install django.") from missing

SETTING: Final = "MAINSPRING_APP"

_lock = threading.Lock()


def configured_app() -> Mainspring:
    """Return the app that the setting MAINSPRING_APP names, as in "shop.flow:app"."""
    address = getattr(conf.settings, SETTING, None)
    if not isinstance(address, str) or ":" not in address:
        raise SettingError(SETTING, address, 'Write the module and the name of your app: "shop.flow:app".')
    module, _, name = address.partition(":")
    found: Any = getattr(import_module(module), name, None)
    if not isinstance(found, Mainspring):
        raise SettingError(SETTING, address, f"It is a {type(found).__name__}; name your Mainspring.")
    return found


def post(message: Message, *, using: str = DEFAULT_DB_ALIAS, **options: Unpack[PostOptions]) -> Posted:
    """Send a message, or publish it, if the surrounding `transaction.atomic()` commits; PostgreSQL only."""
    return configured_app().post.blocking(message, connections[using], **options)


def running() -> BlockingApp:
    """Return the app, running in this process from now on, to send and to read; workers run apart."""
    return _running(configured_app()).app


def _running(app: Mainspring) -> Running:
    # Requests are answered by many threads, and two apps on one store would be in each other's way.
    with _lock:
        return _once(app)


@cache
def _once(app: Mainspring) -> Running:
    return Running(app)

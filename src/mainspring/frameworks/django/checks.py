"""What is wrong with the settings, in the words of `manage.py check`."""

from __future__ import annotations

import os
from typing import Any

from django import conf  # pyright: ignore[reportMissingTypeStubs]  it has none
from django.core.checks import CheckMessage, Error  # pyright: ignore[reportMissingTypeStubs]  as above

from mainspring.app.internals import internals_of
from mainspring.errors import SettingError
from mainspring.frameworks.django.configured import configured_app
from mainspring.frameworks.own_file import file_of


def check_databases(*_asked: Any, **_options: Any) -> list[CheckMessage]:
    """Find an app that is not there, and a SQLite file that both would open."""
    try:
        app = configured_app()
    except (SettingError, ImportError) as error:
        return [Error(str(error), id="mainspring.E001")]
    own = file_of(internals_of(app).url)
    databases: dict[str, dict[str, Any]] = conf.settings.DATABASES
    return [
        Error(
            f"The database {alias!r} is the file of the app, {database['NAME']}",
            hint="Two SQLite libraries in one process destroy it: give the app a file of its own.",
            id="mainspring.E002",
        )
        for alias, database in databases.items()
        if own is not None and "sqlite3" in database.get("ENGINE", "") and os.path.realpath(database["NAME"]) == own
    ]

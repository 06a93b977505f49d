"""The app that Django's settings name, for a command line: `mainspring worker mainspring.frameworks.django.worker:app`.

DJANGO_SETTINGS_MODULE says where the settings are. `manage.py mainspring worker` is the same.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(name)
    import django  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]  its settings are read only when the app is asked for

    from mainspring.frameworks.django.configured import configured_app  # noqa: PLC0415  as above

    library: Any = django
    library.setup()
    return configured_app()

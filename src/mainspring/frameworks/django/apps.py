"""What Django knows of us."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig  # pyright: ignore[reportMissingTypeStubs]  it has none
from django.core import checks  # pyright: ignore[reportMissingTypeStubs]  as above

from mainspring.frameworks.django.checks import check_databases

library: Any = checks


class MainspringConfig(AppConfig):
    """The entry for INSTALLED_APPS. It has no models: workers make mainspring's tables."""

    name = "mainspring.frameworks.django"
    label = "mainspring"
    verbose_name = "mainspring"

    def ready(self) -> None:
        """Look at the settings when Django does."""
        library.register(check_databases, "mainspring")

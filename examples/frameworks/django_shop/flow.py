"""The app, which the settings name."""

from __future__ import annotations

from django.conf import settings

from examples.frameworks.orders import shop

app = shop(settings.DATABASE)

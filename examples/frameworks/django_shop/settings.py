"""Settings: one database for the shop's own tables and for mainspring's."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

DATABASE = os.environ.get("SHOP_DATABASE", "postgresql://localhost/shop")
_parts = urlsplit(DATABASE)

SECRET_KEY = os.environ.get("SHOP_SECRET", "for this machine only")
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
ROOT_URLCONF = "examples.frameworks.django_shop.views"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["mainspring.frameworks.django", "examples.frameworks.django_shop"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(_parts.path[1:]),
        "HOST": _parts.hostname or "",
        "PORT": _parts.port or "",
        "USER": unquote(_parts.username or ""),
        "PASSWORD": unquote(_parts.password or ""),
    }
}
MAINSPRING_APP = "examples.frameworks.django_shop.flow:app"

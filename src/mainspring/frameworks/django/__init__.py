"""An app for Django: `"mainspring.frameworks.django"` in INSTALLED_APPS, and MAINSPRING_APP = "shop.flow:app".

- `post(message)` sends if the surrounding `transaction.atomic()` commits. Nothing of mainspring runs in that process.
- `running().send(message)` sends at once; `running()` has all methods of an app, without `await`.
- `manage.py mainspring worker` runs a worker; `manage.py mainspring stats`, `… studio` and the other commands work too.
"""

from mainspring.frameworks.django.configured import configured_app, post, running

__all__ = ["configured_app", "post", "running"]

"""The same factory of apps as the engine's tests have: one for each store."""

from tests.support.apps import make_app

__all__ = ["make_app"]

from tests.support.apps import make_app

__all__ = ["make_app"]

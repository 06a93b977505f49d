from tests.engine.conftest import make_app

__all__ = ["make_app"]

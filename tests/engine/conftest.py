"""The factory of apps, for each store in turn; orders by a flow and by hand, on a database."""

from tests.engine.flow_twins import cli, filled, url
from tests.support.apps import make_app

__all__ = ["cli", "filled", "make_app", "url"]

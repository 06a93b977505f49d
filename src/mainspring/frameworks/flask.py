"""An extension for Flask: the app available in every view, without an event loop."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, Unpack

from mainspring.app import Mainspring
from mainspring.app.blocking import BlockingApp, BlockingReceipt, BlockingTransaction
from mainspring.app.posting import Posted, PostOptions
from mainspring.app.transactions import TRANSACTION
from mainspring.app.workflow_handle import SendOptions
from mainspring.core.messages import Message
from mainspring.frameworks.process import Running

__all__ = ["FlaskMainspring"]

NAME: Final = "mainspring"


class FlaskMainspring:
    """An app inside a Flask app: `spring = FlaskMainspring(app)`, then `spring.init_app(flask)`.

    It starts at its first use, in each process of the server, and stops with it. With `work=True` it also works there;
    else workers run apart (`mainspring worker shop:app`).

    >>> from types import SimpleNamespace
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> flask = SimpleNamespace(extensions={})
    >>> spring = FlaskMainspring(app, flask, work=True)
    >>> flask.extensions["mainspring"] is spring, spring.send(Count("c-1")).status
    (True, 'stepped')
    >>> spring.stop()
    """

    def __init__(self, app: Mainspring, flask: Any = None, *, work: bool = False) -> None:
        self._app = app
        self._running = Running(app, work=work)
        if flask is not None:
            self.init_app(flask)

    def init_app(self, flask: Any) -> None:
        """Be an extension of a Flask app."""
        flask.extensions[NAME] = self

    @property
    def app(self) -> BlockingApp:
        """The running app, with all its methods, without `await`."""
        return self._running.app

    def send(self, message: Message, **options: Unpack[SendOptions]) -> BlockingReceipt[Any]:
        """Send a message, and return its receipt when it is durable. The options are those of `Mainspring.send`."""
        return self.app.send(message, **options)

    def transaction(self, limit: timedelta = TRANSACTION) -> BlockingTransaction:
        """Return a transaction of the app's database: `with spring.transaction() as transaction`."""
        return self.app.transaction(limit)

    def post(self, message: Message, connection: Any, **options: Unpack[PostOptions]) -> Posted:
        """Send a message if the transaction of a connection of yours commits. The app need not run for this."""
        return self._app.post.blocking(message, connection, **options)

    def stop(self) -> None:
        """Stop the app; the next use starts it again. For tests: at the end of a process it stops by itself."""
        self._running.stop()

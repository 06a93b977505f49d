"""Handlers and webhooks elsewhere: what another service carries out or receives, over HTTP (extra `webhooks`).

addresses   which addresses may be called
targets     which URLs: no more than one meaning, and on the allow-list
client      the client that goes there and nowhere else
service     a service that carries out commands, in whatever language
webhooks    what others subscribe to, signed
"""

from mainspring.remote.service import Service
from mainspring.remote.webhooks import Webhooks

__all__ = ["Service", "Webhooks"]

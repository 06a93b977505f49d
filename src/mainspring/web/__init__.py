"""HTTP around an app: an API for programs, to be mounted or served.

access      who may do what: roles, tokens, and the headers of a proxy
guard       what every request has to pass: hosts, pages from elsewhere, sizes; and what every answer carries
problems    what went wrong, as application/problem+json
served      the app that is served, and what all routes share
slow        questions that take long: beside the event loop, in time, and remembered for a while
searching   the words by which instances are looked for
models      what the documents look like, for OpenAPI
messages, instances, tasks, letters, system    the routes for programs
hooks       webhooks that other services call
travel, history, workflows, analytics, bulk    the routes to analyse instances, or to operate on many
opened      what those share that walk through a stream
live, listening    what changes, as server-sent events: one look for all who listen
api         all of them, as one ASGI app
static      the files of the page
studio      the API and the page
server      a server for them
"""

from mainspring.web.access import Access, ProxyHeaders, Role, Token, Who, read_tokens
from mainspring.web.api import api
from mainspring.web.studio import studio

__all__ = ["Access", "ProxyHeaders", "Role", "Token", "Who", "api", "read_tokens", "studio"]

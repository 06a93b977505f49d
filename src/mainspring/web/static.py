"""The page's files: read once, and nothing else is ever served. What is not there cannot be asked for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response
from msgspec import Struct

from mainspring.web.problems import Problem, Refusal

PAGE: Final = Path(__file__).parent / "page"
INDEX: Final = "index.html"
NOT_BUILT: Final = """\
mainspring: the API is served here, under api/ (see api/openapi.json).

The studio's page is not part of this installation. In a checkout, `make studio` builds it; restart the server then.
"""
MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
FOR_EVER: Final = "public, max-age=31536000, immutable"
EACH_TIME: Final = "no-cache"
LARGEST_BYTES: Final = 4 * 1_024 * 1_024
MOST_FILES: Final = 200

# A bundler's names: the digest of what is in them stands behind a dash.
_HASHED: Final = re.compile(r"-[0-9A-Z]{8}\.\w+$")


class File(Struct, frozen=True):
    """A file, ready to be sent."""

    body: bytes
    media_type: str
    caching: str
    tag: str


def read_files(folder: Path = PAGE) -> dict[str, File]:
    """Return the files of a page by their names; none where it is not built.

    >>> read_files(Path("nowhere"))
    {}
    """
    if not (folder / INDEX).is_file():
        return {}
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in MEDIA_TYPES)
    return {path.name: _file(path) for path in paths[:MOST_FILES] if path.stat().st_size <= LARGEST_BYTES}


def _file(path: Path) -> File:
    body = path.read_bytes()
    caching = FOR_EVER if _HASHED.search(path.name) else EACH_TIME
    return File(body, MEDIA_TYPES[path.suffix], caching, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def routes(files: Mapping[str, File]) -> APIRouter:
    """Return the routes of the page. They need no token: there is nothing in it but code."""
    router = APIRouter(include_in_schema=False)

    @router.get("/", response_model=None)
    async def index(request: Request) -> Response:
        """Return the page, or say how it is built."""
        found = files.get(INDEX)
        if found is None:
            return Response(NOT_BUILT, media_type="text/plain; charset=utf-8", headers={"cache-control": EACH_TIME})
        return _answer(request, found)

    @router.get("/{name}", response_model=None)
    async def file(request: Request, name: str) -> Response:
        """Return a file of the page. Any other name is a place in it, which the page itself finds."""
        found = files.get(name)
        if found is None and "." not in name:
            found = files.get(INDEX)
        if found is None:
            raise Refusal(Problem(404, "not found", f"There is no {name} here.", "NotFound"))
        return _answer(request, found)

    return router


def _answer(request: Request, file: File) -> Response:
    headers = {"cache-control": file.caching, "etag": file.tag}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)

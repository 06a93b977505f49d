"""An app with a counter and leave requests on a file, and a client that asks it over HTTP without a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from mainspring import Mainspring
from mainspring.testing.samples import Counter, LeaveRequests
from mainspring.web.access import Access, Token
from mainspring.web.api import api

SECRETS = {role: f"the-secret-of-the-{role}-is-long" for role in ("viewer", "worker", "operator", "admin")}


def counters(folder: Path) -> Mainspring:
    app = Mainspring(f"sqlite:///{folder / 'web.db'}")
    app.add(Counter(), LeaveRequests())
    return app


def tokens() -> Access:
    return Access(tokens=[Token.of(secret, name=role, role=role) for role, secret in SECRETS.items()])  # pyright: ignore[reportArgumentType]  its keys are roles


def bearer(role: str) -> dict[str, str]:
    return {"authorization": f"Bearer {SECRETS[role]}"}


@asynccontextmanager
async def served(app: Mainspring, **settings: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """Start an app that works, and serve it."""
    async with app, asked(api(app, start=False, **settings)) as client:
        yield client


@asynccontextmanager
async def asked(made: FastAPI) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=made, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
        yield client

"""A subscriber pays every month, and is written to, until somebody cancels or the card fails. As a flow."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta

from mainspring import Mainspring
from mainspring.flows import StepFailed, again, receive, stage

MONTH = timedelta(days=30)
GRACE = timedelta(days=7)


@dataclass(frozen=True)
class Subscribe:
    customer: str
    cents: int
    month: int = 1


@dataclass(frozen=True)
class Cancel:
    customer: str


app = Mainspring("sqlite:///subscriptions.db")


@app.step
async def charge(customer: str, cents: int, month: int) -> None: ...


@app.step
async def write(customer: str, text: str) -> None: ...


@app.flow(id="customer")
async def subscription(plan: Subscribe) -> str:
    stage("paying")
    try:
        await charge(plan.customer, plan.cents, plan.month)
    except StepFailed:
        stage("overdue")
        await write(plan.customer, "Your card was declined")
        await asyncio.sleep(GRACE.total_seconds())  # a timer of the stream, as all that a flow sleeps
        try:
            await charge(plan.customer, plan.cents, plan.month)
        except StepFailed:
            await write(plan.customer, "Your subscription has ended")
            return "not paid"
    stage("paid")
    await write(plan.customer, "Welcome" if plan.month == 1 else "Thank you for staying")
    try:
        async with asyncio.timeout(MONTH.total_seconds()):
            await receive(Cancel)
    except TimeoutError:
        again(replace(plan, month=plan.month + 1))
    await write(plan.customer, "Sorry to see you go")
    return "cancelled"

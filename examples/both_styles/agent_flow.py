"""An agent: a model says which tool to call, a person approves what is dangerous, until the model is done.

As a flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mainspring import Mainspring, Retry
from mainspring.flows import Failure, ask, stage

TURNS = 20
DANGEROUS = frozenset({"send_money"})


@dataclass(frozen=True)
class Task:
    task_id: str
    text: str


@dataclass(frozen=True)
class Turn:
    """What the model says: a tool and its argument, or, without one, its answer."""

    tool: str
    text: str


@dataclass(frozen=True)
class Allow:
    task_id: str


@dataclass(frozen=True)
class Deny:
    task_id: str


app = Mainspring("sqlite:///agents.db")


@app.step(retry=Retry(max_attempts=5), timeout=timedelta(minutes=2))
async def think(conversation: list[str]) -> Turn:
    return Turn("", f"done after {len(conversation)} lines")  # a model, in earnest


@app.step
async def use(tool: str, text: str) -> str:
    return f"{tool} did {text}"


@app.flow(id="task_id")
async def agent(task: Task) -> str:
    conversation = [task.text]
    for _ in range(TURNS):
        turn = await think(conversation)
        if not turn.tool:
            return turn.text
        if turn.tool in DANGEROUS:
            stage("asking")
            if isinstance(await ask(f"{turn.tool} {turn.text}?", Allow | Deny, role="operator"), Deny):
                raise Failure(f"nobody allowed {turn.tool}")
            stage("working")
        conversation = [*conversation, f"{turn.tool} {turn.text}", await use(turn.tool, turn.text)]
    raise Failure("too many turns")

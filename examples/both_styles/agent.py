"""An agent: a model says which tool to call, a person approves what is dangerous, until the model is done.

As decide and evolve.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from mainspring import Ask, Complete, Decisions, Event, Fail, Mainspring, Received, Retry, Send, Workflow

TURNS = 20
DANGEROUS = frozenset({"send_money"})


@dataclass(frozen=True)
class Task:
    task_id: str
    text: str


@dataclass(frozen=True)
class Turn:
    """What the model says: a tool and its argument, or, without one, its answer."""

    task_id: str
    tool: str
    text: str


@dataclass(frozen=True)
class Used:
    task_id: str
    text: str


@dataclass(frozen=True)
class Allow:
    task_id: str


@dataclass(frozen=True)
class Deny:
    task_id: str


Input = Task | Turn | Used | Allow | Deny


@dataclass(frozen=True)
class Think:
    task_id: str
    conversation: tuple[str, ...]


@dataclass(frozen=True)
class Use:
    task_id: str
    tool: str
    text: str


@dataclass(frozen=True)
class Answer:
    text: str


Output = Think | Use | Answer


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Thinking:
    conversation: tuple[str, ...]
    turns: int = 0


@dataclass(frozen=True)
class Using:
    thinking: Thinking
    turn: Turn


State = New | Thinking | Using


class Agent(Workflow[Input, State, Output, Answer]):
    begins = Task
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.task_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Task(_, text)):
                return Thinking((text,))
            case Thinking(), Received(Turn(_, tool) as turn) if tool:
                return Using(replace(state, turns=state.turns + 1), turn)
            case Using(thinking, turn), Received(Used(_, text)):
                return replace(thinking, conversation=(*thinking.conversation, f"{turn.tool} {turn.text}", text))

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Task(id, text), New():
                return [Send(Think(id, (text,)))]
            case Turn(_, "", text), Thinking():
                return [Complete(Answer(text))]
            case Turn(_, tool, text), Thinking() if tool in DANGEROUS:
                return [Ask(f"{tool} {text}?", answer=(Allow, Deny), role="operator")]
            case Turn(id, tool, text), Thinking():
                return [Send(Use(id, tool, text))]
            case Allow(id), Using(_, turn):
                return [Send(Use(id, turn.tool, turn.text))]
            case Deny(), Using(_, turn):
                return [Fail(f"nobody allowed {turn.tool}")]
            case Used(), Using(Thinking(turns=turns)) if turns == TURNS:
                return [Fail("too many turns")]
            case Used(id, text), Using(thinking, turn):
                return [Send(Think(id, (*thinking.conversation, f"{turn.tool} {turn.text}", text)))]


app = Mainspring("sqlite:///agents.db")
app.add(Agent())


@app.handler(retry=Retry(max_attempts=5), timeout=timedelta(minutes=2))
async def think(command: Think) -> Turn:
    return Turn(command.task_id, "", f"done after {len(command.conversation)} lines")  # a model, in earnest


@app.handler
async def use(command: Use) -> Used:
    return Used(command.task_id, f"{command.tool} did {command.text}")

"""What the tables say about a batch."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

from mainspring.port.records import OutputKey, Ref
from mainspring.stores.commit.facts import Facts, Known, OutputFact
from mainspring.stores.commit.questions import Questions
from mainspring.stores.memory.tables import Instance, Tables


def facts_of(tables: Tables, questions: Questions[Known]) -> Facts:
    """Return the answers to a batch's questions."""
    facts = Facts()
    facts.workers = tables.workers.keys()
    facts.keys = count(len(tables.begun) + 1)
    facts.positions = count(tables.inputs_accepted + 1)
    for known in questions.instances.values():
        instance = _of(tables, known)
        if instance.row is not None:
            known.key, known.version = instance.row.key, instance.version
    for instance, version, _ in questions.outputs:
        output = tables.outbox.get(OutputKey(instance, version))
        row = () if output is None else (output.row.priority, output.row.kind, output.row.destination, output.row.key)
        owner = None if output is None else output.owner
        facts.outputs[instance, version] = OutputFact(owner, *(row or (None, None, None, None)))
    for letter, _ in tables.dead.values() if questions.letters else ():
        spot = (letter.workflow, letter.instance, letter.message_id)
        if letter.output is None and spot in questions.letters:
            facts.letters.setdefault(spot, []).append((letter.id, (letter.type, letter.body)))
    for known, version in questions.asked:
        for task in tables.tasks.of(Ref(known.workflow, known.id)):
            if task.status == "open" or task.version == version:
                facts.tasks.put(known.key, task)
    _add_inputs(facts, tables, questions)
    return facts


def _add_inputs(facts: Facts, tables: Tables, questions: Questions[Known]) -> None:
    for known, message_id in questions.inputs:
        instance = _of(tables, known)
        if (taken := instance.taken.get(message_id)) is not None:
            facts.taken[known.name, message_id] = (taken.type, taken.body)
        for position, waiting in instance.inbox.items():
            if waiting.row.message_id == message_id:
                message = (waiting.row.type, waiting.row.body)
                facts.waiting[known.name, message_id] = (position, waiting.row.timer_key, message)
    for position, known in questions.consumed:
        if waiting := _of(tables, known).inbox.get(position):
            facts.consumable[position, known.name] = waiting.row.timer_key
            facts.holders[position, known.name] = waiting.owner
    facts.set_turns()
    for name, turns in facts.turns.items():
        firsts: dict[str | None, int] = {}
        for position, waiting in tables.at(Ref(*name)).inbox.items():
            if position < turns[-1] and position not in turns:
                firsts.setdefault(waiting.row.timer_key, position)
        facts.left[name] = list(firsts.items())
    for name, known in questions.direct.items():
        if waits := _by_timer(_of(tables, known)):
            facts.queued[name] = waits
    for (name, worker), known in questions.claiming.items():
        facts.others[name, worker] = _by_timer(_of(tables, known), besides=worker)


def _by_timer(instance: Instance, besides: int | None = None) -> list[tuple[str | None, int]]:
    """Return how many inputs wait for an instance, by timer key; not counting those that a worker holds."""
    waiting = (one for one in instance.inbox.values() if besides is None or one.owner != besides)
    return list(Counter(one.row.timer_key for one in waiting).items())


def _of(tables: Tables, known: Any) -> Instance:
    return tables.at(Ref(known.workflow, known.id))

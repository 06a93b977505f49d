"""Writes what a batch has changed into the tables, in the order that `Changes` asks for."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mainspring.port.records import ARMED, InstanceRow, OutputKey, OutputRow, Ref
from mainspring.stores.commit.changes import Born, Changes
from mainspring.stores.commit.facts import Facts, Known, OutputFact
from mainspring.stores.memory.tables import Input, Instance, Output, Tables


def write(tables: Tables, changes: Changes[Known], facts: Facts) -> None:
    """Write it all."""
    _take_away(tables, changes)
    _write_instances(tables, changes)
    _write_work(tables, changes)
    for letter, output in changes.dead_letters:
        tables.letters_died += 1
        kept = None if letter.output is None or output is None else _work(tables, letter.output, output)
        tables.dead[tables.letters_died] = (replace(letter, id=tables.letters_died), kept)
    for key, snapshot in changes.snapshots.items():
        tables.keyed(key).snapshot = snapshot
    for key, attributes in changes.attributes.items():
        tables.keyed(key).attributes = attributes
    for attempt in changes.attempts:
        tables.keyed(attempt.instance).note(attempt)
    tables.remembered |= changes.results
    for key, task in facts.tasks.changed():
        tables.tasks.put(key, task)
    for key, task in facts.tasks.opened():
        ref, row = tables.begun[key - 1], tables.keyed(key).row
        context = row.context if row else b"{}"
        tables.tasks.put(key, replace(task, workflow=ref.workflow, instance=ref.id, context=context))
    for key, (after, upto) in changes.trimmed.items():
        tables.keyed(key).trim(after, upto, _pinned(tables, key))


def _take_away(tables: Tables, changes: Changes[Known]) -> None:
    for spot in changes.settled:
        tables.drop_output(OutputKey(*spot))
    for key in _cancelled(tables, changes) if changes.cancels else ():
        tables.drop_output(key)
    for spot, (due_us, attempts, error) in changes.retried.items():
        output = tables.outbox[OutputKey(*spot)]
        output.lost = 0 if attempts > output.attempts else output.lost
        output.give_back()
        output.attempts, output.error, output.due_us = attempts, error, due_us
    for known, position in changes.consumed:
        tables.drop_input(tables.instances[Ref(*known.name)], position)
    for known, key in changes.fired:
        instance = tables.at(Ref(*known.name))
        for position, waiting in list(instance.inbox.items()):
            if waiting.row.timer_key is not None and key in (None, waiting.row.timer_key):
                tables.drop_input(instance, position)
    handled = set(changes.handled)
    for id, (letter, _) in list(tables.dead.items()) if handled or changes.discarded else ():
        output = letter.output
        taken = output is not None and (letter.workflow, letter.instance, output.version) in handled
        if taken or id in changes.discarded:
            del tables.dead[id]


def _cancelled(tables: Tables, changes: Changes[Known]) -> list[OutputKey]:
    """Return the outputs to be cancelled. Only instances that cancel are looked at, however much waits for others."""
    unclaimed, forward = set(changes.cancelled["unclaimed"]), set(changes.cancelled["forward"])
    timers, keys = forward.union(changes.cancelled["timers"]), set(changes.cancelled_keys)
    begun = len(tables.begun)  # what the batch begins has nothing here yet
    return [
        key
        for instance in {*unclaimed, *timers, *(instance for instance, _ in keys)}
        for key, output in (tables.keyed(instance).outbox.items() if instance <= begun else ())
        if (instance in timers and output.row.kind == "timer")
        or (output.free and (instance in unclaimed or (instance in forward and output.row.key == ARMED)))
        or (instance, output.row.key) in keys
    ]


def _write_instances(tables: Tables, changes: Changes[Known]) -> None:
    now_us = changes.now_us
    for known in changes.begun:
        ref = Ref(*known.name)
        tables.begun.append(ref)
        instance = tables.instances.setdefault(ref, Instance())
        instance.takes(
            InstanceRow(
                known.key,
                ref.workflow,
                ref.id,
                known.version,
                known.status,
                known.state,
                known.error,
                known.definition_version,
                known.context,
                now_us,
                now_us,
            )
        )
    for known in changes.moved:
        instance = tables.keyed(known.key)
        if instance.suspended and known.status != "suspended":
            for waiting in instance.inbox.values():
                waiting.lost, waiting.owner = 0, None if waiting.free else waiting.owner
            changes.news = True
        told: dict[str, Any] = {"status": known.status, "state": known.state, "error": known.error}
        if instance.row is not None:
            instance.takes(replace(instance.row, version=known.version, updated_us=now_us, **told))
    for known in changes.renewed:
        instance = tables.keyed(known.key)
        if instance.row is not None:
            told = {"definition_version": known.definition_version, "context": known.context}
            instance.row = replace(instance.row, **told)
            tables.tasks.renew(Ref(*known.name), known.context)
    for key, event in zip(changes.event_keys, changes.events, strict=True):
        instance = tables.keyed(key)
        instance.events[event.version] = event
        tables.events_fed += 1
        tables.feed.append((tables.events_fed, tables.begun[key - 1], event))
        if event.message_id is not None:
            instance.taken[event.message_id] = event


def _write_work(tables: Tables, changes: Changes[Known]) -> None:
    """Write outputs, and what was accepted and released: behind the instances, whose new status counts."""
    for born in changes.outputs.values():
        key = OutputKey(born.instance, born.version)
        tables.put_output(key, _work(tables, key, born))
    accepted = [one for known in changes.receivers.values() for one in (known.accepted or {}).values()]
    for position, row, owner in sorted((*accepted, *changes.dropped), key=lambda one: one[0]):
        instance = tables.instances.setdefault(Ref(row.workflow, row.instance), Instance())
        tables.inputs_accepted = position
        tables.inbox[position] = instance.inbox[position] = Input(replace(row, position=position), owner=owner)
    for position, row, _ in changes.dropped:
        tables.drop_input(tables.instances[Ref(row.workflow, row.instance)], position)
    for known, position, worker in changes.released:
        waiting = tables.at(Ref(*known.name)).inbox.get(position)
        if waiting is not None and waiting.owner == worker:
            waiting.give_back()


def _work(tables: Tables, key: OutputKey, output: Born | OutputFact) -> Output:
    """Return an output as the outbox has it."""
    kind: Any = output.kind
    row = OutputRow(key.version, kind, output.destination or "", key=output.key, priority=output.priority or 0)
    work = Output(tables.begun[key.instance - 1], row, 0)
    if isinstance(output, Born):
        work.due_us, work.attempts, work.error, work.owner = output.due_us, output.attempts, output.error, output.owner
    return work


def _pinned(tables: Tables, key: int) -> set[int]:
    """Return the versions of an instance's outputs that are not carried out, or are dead letters."""
    pinned = {output.version for output in tables.keyed(key).outbox}
    letters = tables.letters_of(tables.begun[key - 1])
    return pinned | {letter.output.version for letter in letters if letter.output is not None}

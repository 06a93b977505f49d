"""What every example promises: it is pure, whatever the order of its messages, and all of it can be stored."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import examples
from examples.stories import Story, Taken
from mainspring import Kind, Received, Workflow
from mainspring.codec import Codec
from mainspring.flows import Flow
from mainspring.purity import check_purity
from mainspring.testing import Rehearsal, envelope, fuzz


def packages() -> list[str]:
    """Return the packages that have something to tell."""
    found = [module.name for module in pkgutil.iter_modules(examples.__path__, "examples.") if module.ispkg]
    return [name for name in found if any(module.name == "story" for module in submodules(name))]


def submodules(package: str) -> list[pkgutil.ModuleInfo]:
    return list(pkgutil.iter_modules(importlib.import_module(package).__path__))


def written(package: str) -> Iterator[type[Workflow[Any, Any, Any]]]:
    """Yield the workflows that the modules of an example define."""
    for module in submodules(package):
        name = f"{package}.{module.name}"
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, type) and issubclass(value, Workflow) and value.__module__ == name:
                yield value


STORIES: list[Story] = [s for name in packages() for s in importlib.import_module(f"{name}.story").STORIES]
WORKFLOWS = [workflow for name in packages() for workflow in written(name)]

every_workflow = pytest.mark.parametrize("cls", WORKFLOWS, ids=lambda cls: cls.__name__)


def said(story: Story) -> list[Any]:
    """Return a story's messages as fuzz takes them: bare, or in an envelope where the story says something about it."""
    kinds = [entry.kind for entry in story.rehearse().entries if isinstance(entry.event, Received)]
    return [_said(taken, kind) for taken, kind in zip(story.inputs(), kinds, strict=True)]


def _said(taken: Taken, kind: Kind | None) -> Any:
    if taken.kind is None and taken.actor is None:
        return taken.message
    return envelope(taken.message, kind=kind or Kind.COMMAND, actor=taken.actor)


FLOWS = [story for story in STORIES if isinstance(story.workflow, Flow)]


def test_every_workflow_of_the_examples_has_a_story() -> None:
    assert len(packages()) == 9
    assert (len(WORKFLOWS), len(FLOWS)) == (14, 4)
    assert {type(story.workflow) for story in STORIES if story not in FLOWS} == set(WORKFLOWS)


@pytest.mark.parametrize("story", FLOWS, ids=lambda story: story.workflow.name)
def test_a_flow_goes_on_from_its_stream_as_if_it_had_never_stopped(story: Story) -> None:
    """Each input is decided on by code that is run again from the beginning, and nothing else comes of it."""
    told = story.rehearse()
    again = Rehearsal(story.workflow)
    for taken in story.inputs():
        again.state = type(again.state)() if not again.entries else fresh(again)
        again.take(taken.message, kind=taken.kind, actor=taken.actor)
    assert again.events == told.events


def fresh(rehearsal: Rehearsal[Any, Any, Any]) -> Any:
    """Return the state with a journal of its own, for which no run is kept."""
    after: Any = type(rehearsal.state)()
    for entry in rehearsal.state.entries:
        after = after.appended(entry)
    return after


@every_workflow
def test_a_workflow_is_pure_to_the_reader(cls: type[Workflow[Any, Any, Any]]) -> None:
    assert check_purity(cls) == []


@every_workflow
def test_a_workflow_keeps_its_promises_in_any_order_of_its_messages(cls: type[Workflow[Any, Any, Any]]) -> None:
    codec = Codec()
    codec.register_workflow(cls)

    def all_of_it_can_be_stored(rehearsal: Rehearsal[Any, Any, Any]) -> None:
        codec.states(cls).encode(rehearsal.state)
        for event in rehearsal.events:
            message = getattr(event, "message", None)
            if message is not None:
                codec.encode(message)

    messages = [message for story in STORIES if type(story.workflow) is cls for message in said(story)]
    fuzzed = fuzz(cls(), messages, properties=[all_of_it_can_be_stored], max_examples=50)
    assert fuzzed.steps > 100

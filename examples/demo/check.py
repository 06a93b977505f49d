"""Whether anything was lost or doubled: the streams, against what the client was told and what handlers did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from mainspring.port.ids import plain
from mainspring.port.records import DeadLetter, EventRow, InputRow, Ref
from mainspring.port.store import Store

INPUTS: Final = frozenset({"InitiatedBy", "Received", "Kept"})
PAGE: Final = 5_000

Feed = list[tuple[Ref, EventRow]]


@dataclass(frozen=True)
class Click:
    """Somebody's click on a task, and what they were told: that they were first, who was, or why they may not."""

    task: str
    person: str
    may: bool = True
    first: bool = False
    winner: str = ""
    refused: str = ""


@dataclass(frozen=True)
class Verdict:
    """What is missing, what is there too often, and what was found to be right."""

    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    inputs: int
    commands: int
    called_again: int

    @property
    def good(self) -> bool:
        return not self.lost and not self.doubled


async def read_feed(store: Store) -> Feed:
    """Return every event of every stream."""
    found: Feed = []
    after = 0
    while page := await store.feed(after, PAGE):
        found += [(ref, row) for _, ref, row in page]
        after = page[-1][0]
    return found


def check(
    told: Mapping[str, str],
    feed: Feed,
    waiting: Iterable[InputRow],
    letters: Iterable[DeadLetter],
    effects: list[dict[str, str]],
    handled: frozenset[str],
    clicks: Iterable[Click] = (),
) -> Verdict:
    """Compare. `told` are the ids of acknowledged inputs with their instances, `handled` what handlers carry out."""
    clicks = list(clicks)
    places = Counter((str(ref), plain(row.message_id)) for ref, row in feed if row.event in INPUTS and row.message_id)
    places.update((f"{row.workflow}/{row.instance}", plain(row.message_id)) for row in waiting)
    buried = Counter((f"{letter.workflow}/{letter.instance}", plain(letter.message_id)) for letter in letters)
    places.update(buried)
    inputs = [(instance, id) for id, instance in told.items()]

    sent = [(f"{ref}/{row.version}", str(ref)) for ref, row in feed if row.event == "Sent" and row.type in handled]
    results = Counter(f"{ref}/{row.cause}" for ref, row in feed if row.kind == "result")
    made = Counter(line["effect"] for line in effects if "effect" in line)
    called = Counter(line["called"] for line in effects if "called" in line)
    commands = {key for key, _ in sent}

    lost = [f"the input {id} of {instance}" for instance, id in inputs if not places[instance, id]]
    lost += [f"the command {key}" for key, instance in sent if not made[key] and not buried[instance, key]]
    lost += _gaps(feed)
    lost += _misled(clicks, feed)
    doubled = [f"the input {id} of {instance}" for (instance, id), count in places.items() if count > 1]
    doubled += [f"the result of {key}" for key, count in results.items() if count > 1]
    doubled += [f"the effect of {key}" for key, count in made.items() if count > 1]
    doubled += [f"the effect of {key}, which nobody recorded" for key in made if key not in commands]
    firsts = Counter(click.task for click in clicks if click.first)
    doubled += [f"the answer to {task}" for task, count in firsts.items() if count > 1]
    again = sum(count - 1 for count in called.values())
    return Verdict(tuple(lost), tuple(doubled), len(inputs), len(sent), again)


def _misled(clicks: Iterable[Click], feed: Feed) -> list[str]:
    """Return the clicks of people who were told something else than what is right and stands in the stream."""
    answers = {
        plain(row.message_id or ""): row.actor for _, row in feed if row.kind == "answer" and row.event in INPUTS
    }
    wrong: list[str] = []
    for click in clicks:
        recorded = answers.get(f"{click.task}/answer")
        told = click.person if click.first else click.winner
        if click.may is bool(click.refused) or (recorded == click.person if click.refused else recorded != told):
            wrong.append(f"the word given to {click.person} about {click.task}, which {recorded} answered")
    return wrong


def _gaps(feed: Feed) -> list[str]:
    last: Counter[Ref] = Counter()
    missing: list[str] = []
    for ref, row in feed:
        last[ref] += 1
        if row.version != last[ref]:
            missing.append(f"version {last[ref]} of {ref}")
            last[ref] = row.version
    return missing

"""The comparison as a section of a page: one table first, then the targets, the picture and how it was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bench.bars import Bar, Panel, picture
from bench.comparison import Comparison, Found
from bench.contenders import BARE, CONTENDERS, FEWER, QUICK, SIZES, STORES, Contender
from bench.targets import HANDLERS_SECONDS, LEASE_SECONDS, outcomes

NOTHING: Final = "-"
# Title, workload, figure, digits behind the point.
COLUMNS: Final = (
    ("W1 instances/s", "w1", "instances_per_s", 0),
    ("W2 p50 ms", "w2", "p50_ms", 2),
    ("W2 p99 ms", "w2", "p99_ms", 2),
    ("W3 1,000 s", "w3", "seconds", 2),
    ("W3 5,000 s", "w3-long", "seconds", 2),
    ("W4 s", "w4", "seconds", 3),
    ("W5 s", "w5", "seconds", 2),
    ("W5 run twice", "w5", "effects_run_twice", 0),
    ("W6 late s", "w6", "late_s", 2),
    ("disk bytes each", "w1", "disk_bytes_per_instance", 0),
    ("memory MB (W1)", "w1", "rss_mb", 0),
)
PANELS: Final = (
    ("W1: orders a second (more is better)", "w1", "instances_per_s"),
    ("W2: one order, p50 in ms (less is better)", "w2", "p50_ms"),
    ("W3: 5,000 calls in sequence, s (less is better)", "w3-long", "seconds"),
    ("W4: 1,000 commands at once and joined, s (less is better)", "w4", "seconds"),
    ("W5: from a kill -9 to all done, s (less is better)", "w5", "seconds"),
    ("W6: 10,000 timers (DBOS 500, Restate 3,000), s from due to the last (less is better)", "w6", "late_s"),
)
READING: Final = """\
Medians over the rounds, with the least and the most of them in brackets. In every round, all contenders do a workload
one after the other before the next workload begins, each in processes and a folder (or schema) of its own; ratios are
taken round by round. Every run checks afterwards that all work was done and stored, and that nothing was durable by
name only. `default` is what one gets without settings (for mainspring: a plain process), `best` the fastest durable
settings found (for mainspring: a process set up as `mainspring worker` sets up its own, W5's a plain one; on PostgreSQL
W1 has a client and two worker processes, and their memory is added up). Elsewhere are the [workloads](README.md), and
[what the peers do, with each setting and its reason](peers/README.md)."""


def section(comparison: Comparison, plot: str) -> str:
    """Return the section; `plot` is where the picture is."""
    parts = [
        "## mainspring, its peers and the bare limit",
        _table(comparison),
        READING,
        _targets(comparison),
        f"![the same figures as bars]({plot})",
        "### How it was measured",
        _facts(comparison),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def plot(comparison: Comparison) -> str:
    """Return the picture. A figure of zero or less has no place on a logarithmic scale."""
    return picture(
        [
            Panel(title, [bar for bar in _bars(comparison, workload, figure) if bar.found.least > 0])
            for title, workload, figure in PANELS
        ]
    )


def _bars(comparison: Comparison, workload: str, figure: str) -> Iterator[Bar]:
    for contender in CONTENDERS:
        if (found := comparison.found(contender, workload, figure)) is not None:
            yield Bar(contender.name, contender.engine, found)


def _table(comparison: Comparison) -> str:
    titles = ["", *(title for title, *_ in COLUMNS)]
    lines = [_row(titles), "|---|" + "---:|" * len(COLUMNS)]
    for contender in CONTENDERS:
        if contender.engine in comparison.absent:
            continue
        lines.append(_row([contender.name, *(_cell(comparison, contender, *column[1:]) for column in COLUMNS)]))
    lines += [_row([f"{engine}: {why}", *[NOTHING] * len(COLUMNS)]) for engine, why in comparison.absent.items()]
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(comparison: Comparison, contender: Contender, workload: str, figure: str, digits: int) -> str:
    found = comparison.found(contender, workload, figure)
    if found is not None:
        return written(found, digits)
    failed = [sample for sample in comparison.failures if (sample.contender, sample.workload) == (contender, workload)]
    return "failed" if failed else NOTHING


def written(found: Found, digits: int) -> str:
    """Return a figure with its spread, where there is one.

    >>> written(Found(1234.5, 1200.0, 1300.0, 3), 0)
    '1,234 (1,200 to 1,300)'
    >>> written(Found(0.25, 0.25, 0.25, 1), 2)
    '0.25'
    """
    middle = f"{found.middle:,.{digits}f}"
    if found.rounds == 1:
        return middle
    return f"{middle} ({found.least:,.{digits}f} to {found.most:,.{digits}f})"


def _targets(comparison: Comparison) -> str:
    if comparison.quick:
        return "This was a short run of small sizes, to see that everything works: its figures are no measurement."
    lines = ["### Targets", "", _row(["figure", "store", "target", "reached", ""]), "|---|---|---|---:|---|"]
    for outcome in outcomes(comparison):
        target, found = outcome.target, outcome.found
        reached = NOTHING if found is None else f"{written(found, 2 if found.middle < 1_000 else 0)}{target.unit}"
        lines.append(_row([target.what, STORES[target.store], target.bound, reached, outcome.verdict]))
    why = (
        f"Judged are medians in the best setting. In W5, {HANDLERS_SECONDS} s are the handlers' own time, and on"
        f" PostgreSQL {LEASE_SECONDS} s the lease."
    )
    return "\n".join([*lines, "", why])


def _facts(comparison: Comparison) -> str:
    sizes = QUICK if comparison.quick else SIZES
    lines = [f"- {name}: {value}" for name, value in comparison.facts.items()]
    lines += [f"- {engine} {version}" for engine, version in comparison.versions().items()]
    lines.append(
        f"- {comparison.rounds} rounds; n: " + ", ".join(f"{name} {number:,}" for name, number in sizes.items())
    )
    if not comparison.quick:
        lines += [
            f"- {engine} has fewer: " + ", ".join(f"{name} {number:,}" for name, number in fewer.items())
            for engine, fewer in FEWER.items()
            if engine not in comparison.absent
        ]
        lines.append("- peers, and mainspring by default, do the long W3, W5 and W6 in every second round")
    if (busy := comparison.others_busy()) is not None:
        lines.append(
            f"- others kept {busy.middle:.0%} of the machine busy in the median run, {busy.most:.0%} in the worst"
            " (above 10 %, look at ratios rather than at times)"
        )
    lines.append(f"- the {BARE} writes what W1 leaves, and does nothing else: no other workload has one")
    lines += [
        f"- no figure: {sample.contender.name}, {sample.workload}, round {sample.round + 1}: {_quoted(sample.failure)}"
        for sample in comparison.failures
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return text.replace("|", "/").replace("<", "(")

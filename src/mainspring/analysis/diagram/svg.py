"""A diagram as SVG, laid out by our own layout: for a file, or for the inside of a page.

Colours follow the reader's light or dark setting, and are light on paper. Lines and states have tooltips.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mainspring.analysis.diagram.diagram import Arrow, Diagram, Node, Seen
from mainspring.analysis.diagram.labels import cut, dwell_of, width_of
from mainspring.analysis.diagram.layers import Box, Line
from mainspring.analysis.diagram.layout import Curve, Layout, PlacedBox, PlacedLine, lay_out
from mainspring.analysis.texts import escape

MARGIN_PX: Final = 16.0
NAME_PX: Final = 13.0
SMALL_PX: Final = 11.0
LINE_PX: Final = 15.0
MARK_PX: Final = 14.0
LABELS_SHOWN: Final = 5
GUARD_CHARACTERS: Final = 36
NOTE_CHARACTERS: Final = 110
NOTES_SHOWN: Final = 12

STYLE: Final = """\
.ms-diagram { --ink: #1f2937; --soft: #6b7280; --line: #4b5563; --paper: #ffffff; --box: #eef2ff; --edge: #4f46e5;
  --end: #ecfdf5; --done: #047857; --fail: #fef2f2; --bad: #b91c1c; --old: #c2410c;
  background: var(--paper); font-family: Helvetica, Arial, 'Liberation Sans', sans-serif; font-size: 11px }
@media screen and (prefers-color-scheme: dark) { .ms-diagram { --ink: #e5e7eb; --soft: #9ca3af; --line: #9ca3af;
  --paper: #111827; --box: #1e1b4b; --edge: #a5b4fc; --end: #022c22; --done: #6ee7b7; --fail: #450a0a; --bad: #fca5a5;
  --old: #fdba74 } }
.ms-diagram text { fill: var(--ink); text-anchor: middle }
.ms-diagram .name { font-size: 13px; font-weight: 600 }
.ms-diagram .small { fill: var(--soft) }
.ms-diagram rect { fill: var(--box); stroke: var(--edge); stroke-width: 1.2 }
.ms-diagram .completed rect { fill: var(--end); stroke: var(--done) }
.ms-diagram .failed rect { fill: var(--fail); stroke: var(--bad) }
.ms-diagram .mark { fill: var(--ink) }
.ms-diagram .line { fill: none; stroke: var(--line); stroke-width: 1.3 }
.ms-diagram .head { fill: var(--line) }
.ms-diagram rect.behind { fill: var(--paper); stroke: none }
.ms-diagram .code rect, .ms-diagram .code .line { stroke: var(--soft); stroke-dasharray: 5 4 }
.ms-diagram .code rect { fill: none }
.ms-diagram .code text, .ms-diagram text.code { fill: var(--soft) }
.ms-diagram .code .head { fill: var(--soft) }
.ms-diagram .history rect, .ms-diagram .history .line { stroke: var(--old) }
.ms-diagram .history text, .ms-diagram text.history, .ms-diagram .history .head { fill: var(--old) }
.ms-diagram .loop { text-anchor: start }
.ms-diagram .note { text-anchor: start; fill: var(--soft) }"""

_KEY: Final[dict[Seen, str]] = {
    "both": "in the code, and happened",
    "code": "in the code, never happened",
    "history": "happened, not in the code: older code",
}


def to_svg(diagram: Diagram) -> str:
    """Return a diagram as an SVG document, which may also stand inside an HTML page.

    >>> to_svg(Diagram("Door", "code", (Node("Open"),), ())).startswith("<svg ")
    True
    """
    layout = layout_of(diagram)
    notes = _notes(diagram)
    wide = max([layout.width, *(width_of(text, SMALL_PX) + 22 for _, text in notes)]) + 2 * MARGIN_PX
    high = layout.height + 2 * MARGIN_PX + (len(notes) * LINE_PX + 8 if notes else 0)
    shift = (wide - layout.width) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ms-diagram" role="img" {_size(wide, high)}>',
        f"<title>{escape(_title(diagram))}</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<g transform="translate({_n(shift)} {_n(MARGIN_PX)})">',
        *(_drawn_line(arrow, line) for arrow, line in zip(diagram.arrows, layout.lines, strict=True)),
        *(_labels(arrow, line) for arrow, line in zip(diagram.arrows, layout.lines, strict=True) if arrow.steps),
        *(_drawn_box(node, box) for node, box in zip(diagram.nodes, layout.boxes, strict=True)),
        "</g>",
        *_drawn_notes(notes, layout.height + 2 * MARGIN_PX),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def layout_of(diagram: Diagram) -> Layout:
    """Return where the boxes and lines of a diagram lie, in their order, with room for the texts that `to_svg` writes.

    >>> [placed.box.name for placed in layout_of(Diagram("Door", "code", (Node("Open"),), ())).boxes]
    ['Open']
    """
    return lay_out([_box(node) for node in diagram.nodes], [_line(arrow) for arrow in diagram.arrows])


def _title(diagram: Diagram) -> str:
    sources = {"code": "read from its code", "history": "mined from its history", "both": "from its code and history"}
    return f"State diagram of {diagram.workflow}, {sources[diagram.source]}"


# ---- boxes


def _box(node: Node) -> Box:
    if node.kind == "begin":
        return Box(node.name, MARK_PX, MARK_PX)
    name, *small = _texts(node)
    wide = max([width_of(name, NAME_PX, bold=True), *(width_of(text, SMALL_PX) for text in small)])
    return Box(node.name, wide + 24, 16 + LINE_PX * (1 + len(small)))


def _texts(node: Node) -> list[str]:
    if node.kind == "end":
        return list(node.ends)
    return [part for part in (node.name, " or ".join(node.ends), dwell_of(node)) if part]


def _drawn_box(node: Node, placed: PlacedBox) -> str:
    if node.kind == "begin":
        mark = f'<circle class="mark" cx="{_n(placed.x)}" cy="{_n(placed.y)}" r="{_n(MARK_PX / 2)}"/>'
        return f"<g><title>An instance begins.</title>{mark}</g>"
    round_px = placed.box.height / 2 if node.kind == "end" else 8.0
    kinds = [node.seen, *(node.ends if len(node.ends) == 1 else ())]
    return "".join(
        (
            f'<g class="{" ".join(kinds)}"><title>{escape(_told(node))}</title>',
            _rect(placed, 0, round_px),
            _rect(placed, 3, round_px - 3) if node.ends else "",
            *(
                f'<text class="{"name" if row == 0 else "small"}" x="{_n(placed.x)}" '
                f'y="{_n(placed.top + 8 + LINE_PX * (row + 0.78))}">{escape(text)}</text>'
                for row, text in enumerate(_texts(node))
            ),
            "</g>",
        )
    )


def _rect(placed: PlacedBox, inside: float, round_px: float) -> str:
    left, top, both = placed.left + inside, placed.top + inside, 2 * inside
    size = f'width="{_n(placed.box.width - both)}" height="{_n(placed.box.height - both)}"'
    return f'<rect x="{_n(left)}" y="{_n(top)}" {size} rx="{_n(max(round_px, 0))}"/>'


def _told(node: Node) -> str:
    seen = {"code": "never visited", "history": "not in the code: older code had it", "both": ""}[node.seen]
    ended = f"instances end here: {', '.join(node.ends)}" if node.ends else ""
    return " · ".join(part for part in (node.name, cut(node.doc, 300), dwell_of(node), ended, seen) if part)


# ---- lines


def _shown(arrow: Arrow) -> list[tuple[str, str]]:
    """Return the lines of an arrow's label, each with its class: messages, and their guards below them."""
    shown = arrow.steps if len(arrow.steps) <= LABELS_SHOWN else arrow.steps[: LABELS_SHOWN - 1]
    labels: list[tuple[str, str]] = []
    for step in shown:
        labels.append((step.head, step.seen))
        if step.guard:
            labels.append((cut(step.guard, GUARD_CHARACTERS), f"small {step.seen}"))
    if more := len(arrow.steps) - len(shown):
        labels.append((f"+{more} more", arrow.seen))
    return labels


def _line(arrow: Arrow) -> Line:
    labels = _shown(arrow)
    wide = max((width_of(text, SMALL_PX) for text, _ in labels), default=0.0)
    return Line(arrow.source, arrow.target, wide + 6 if labels else 0, LINE_PX * len(labels))


def _drawn_line(arrow: Arrow, placed: PlacedLine) -> str:
    told = "\n".join([f"{arrow.source} → {arrow.target}", *(step.told for step in arrow.steps)])
    path = " ".join([f"M{_pair(placed.start)}", *(_curve(curve) for curve in placed.curves)])
    seen = arrow.seen if arrow.steps else "both"
    head = _head(placed)
    return f'<g class="{seen}"><title>{escape(told)}</title><path class="line" d="{path}"/>{head}</g>'


def _curve(curve: Curve) -> str:
    return f"C{_pair(curve.first)} {_pair(curve.second)} {_pair(curve.end)}"


def _head(placed: PlacedLine) -> str:
    """Return the point of an arrow, by the direction in which its last curve arrives."""
    (x, y), (fx, fy) = placed.end, placed.curves[-1].second
    dx, dy = x - fx, y - fy
    long = (dx * dx + dy * dy) ** 0.5 or 1.0
    ux, uy = dx / long * 8, dy / long * 8
    left, right = (x - ux - uy / 2, y - uy + ux / 2), (x - ux + uy / 2, y - uy - ux / 2)
    return f'<path class="head" d="M{_pair((x, y))} L{_pair(left)} L{_pair(right)} Z"/>'


def _labels(arrow: Arrow, placed: PlacedLine) -> str:
    (x, y), line = placed.label, placed.line
    top = y - line.height / 2
    told = escape("\n".join(step.told for step in arrow.steps))
    behind = (
        f'<rect class="behind" x="{_n(x - line.width / 2)}" y="{_n(top)}" width="{_n(line.width)}" '
        f'height="{_n(line.height)}"/>'
    )
    # Beside a loop the lines begin at it; on a line they stand in the middle.
    loop = arrow.source == arrow.target
    at, also = (x - line.width / 2, " loop") if loop else (x, "")
    texts = (
        f'<text class="{kind}{also}" x="{_n(at)}" y="{_n(top + LINE_PX * (row + 0.75))}">{escape(text)}</text>'
        for row, (text, kind) in enumerate(_shown(arrow))
    )
    return f"<g><title>{told}</title>{behind}{''.join(texts)}</g>"


# ---- the key and the notes


def _notes(diagram: Diagram) -> list[tuple[Seen | None, str]]:
    key: list[tuple[Seen | None, str]] = []
    if diagram.source == "both":
        there = {seen for arrow in diagram.arrows for seen in (arrow.seen, *(step.seen for step in arrow.steps))}
        key = [(seen, text) for seen, text in _KEY.items() if seen in there]
    notes = [cut(note, NOTE_CHARACTERS) for note in diagram.notes]
    if len(notes) > NOTES_SHOWN:
        notes = [*notes[: NOTES_SHOWN - 1], f"… and {len(notes) - NOTES_SHOWN + 1} more notes."]
    if diagram.instances is not None:
        notes.insert(0, f"{diagram.instances:,} {'instance' if diagram.instances == 1 else 'instances'}.")
    return [*key, *((None, note) for note in notes)]


def _drawn_notes(notes: Sequence[tuple[Seen | None, str]], top: float) -> list[str]:
    drawn: list[str] = []
    for row, (seen, text) in enumerate(notes):
        y = top + LINE_PX * row
        if seen is not None:
            line = f'<path class="line" d="M{_n(MARGIN_PX)} {_n(y)} h16"/>'
            drawn.append(f'<g class="{seen}">{line}</g>')
        at = MARGIN_PX + (22 if seen is not None else 0)
        drawn.append(f'<text class="note" x="{_n(at)}" y="{_n(y + 4)}">{escape(text)}</text>')
    return drawn


# ---- numbers


def _size(wide: float, high: float) -> str:
    return f'viewBox="0 0 {_n(wide)} {_n(high)}" width="{_n(wide)}" height="{_n(high)}"'


def _pair(point: tuple[float, float]) -> str:
    return f"{_n(point[0])} {_n(point[1])}"


def _n(number: float) -> str:
    """Return a number of pixels, short.

    >>> _n(12.0), _n(1 / 3)
    ('12', '0.33')
    """
    return f"{number:.2f}".rstrip("0").rstrip(".")

"""`python -m bench NAME` makes a measurement. See bench/README.md for what each figure means."""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

from msgspec import structs

from bench.catalogue import BENCHES
from bench.compare import compare
from bench.core import core
from bench.growth_axes import AXES
from bench.measure import REPEATS, Figures
from bench.page import put_result
from bench.places import filesystem, on_disk
from bench.report import emit, result
from bench.rounds import one_round
from bench.servers import VARIABLE, measured_server
from bench.settings import STORES, Settings

OTHERS = {
    "core": core.__doc__,
    "compare": "Run the bare limit and the engine in turns, and print how much of the limit the engine reaches.",
}


def main() -> None:
    arguments = _parser().parse_args()
    # Or the server that was started for the command would outlive it.
    signal.signal(signal.SIGTERM, _end)
    if arguments.bench == "core":
        emit(core(repeats=arguments.repeat), as_json=arguments.json)
        return
    folder = on_disk(arguments.dir)
    settings = Settings(
        folder=str(folder),
        store=arguments.store,
        chunk=arguments.chunk,
        batch=arguments.batch,
        workers=arguments.workers,
        tuned=arguments.tuned,
        switch_interval=arguments.switch_interval,
        axis=getattr(arguments, "axis", "all"),
    )
    place: Figures = {"tuned": settings.tuned}
    if settings.durable:
        place["filesystem"] = filesystem(folder)
    if arguments.url and settings.store != "postgres":
        raise SystemExit("--url names a PostgreSQL server: it goes with --store postgres.")
    if arguments.url and arguments.bench == "w5":
        raise SystemExit("w5 crashes its server, so it starts one of its own: leave --url out.")
    # W5's server is the run's own.
    server = nullcontext(settings) if arguments.bench == "w5" else measured_server(settings, arguments.url)
    try:
        with server as settings:
            for figures in _figures(arguments, settings):
                _emit({**figures, **place}, as_json=arguments.json)
                section = BENCHES[arguments.bench].section if arguments.bench in BENCHES else None
                if section is not None and not arguments.json:
                    sys.stdout.write(f"\n{section(figures)}\n")
                plot = BENCHES[arguments.bench].plot if arguments.bench in BENCHES else None
                if plot is not None and arguments.svg:
                    arguments.svg.write_text(plot(figures))
                if section is not None and arguments.into:
                    put_result(arguments.into, figures, section, plot)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _figures(arguments: argparse.Namespace, settings: Settings) -> list[Figures]:
    if arguments.bench != "compare":
        return _results(arguments.bench, settings, arguments.n, arguments.repeat)
    settings = structs.replace(settings, n=arguments.n or BENCHES["w1"].sizes[0])
    about = {"bench": "compare", "store": settings.store, "n": settings.n, "repeats": arguments.repeat}
    return [{**about, **compare(settings, arguments.repeat, _tell)}]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures mainspring. Figures are medians of repeated runs; compare only figures of one run.",
    )
    benches = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    helps = {name: bench.run.__doc__ for name, bench in BENCHES.items()} | OTHERS
    for name, help in helps.items():
        bench = benches.add_parser(name, help=help, description=help)
        bench.add_argument("--json", action="store_true", help="one JSON line per result, with the machine's facts")
        repeats = BENCHES[name].repeats if name in BENCHES else REPEATS
        bench.add_argument("--repeat", type=_positive, default=repeats, help="how many runs (default: %(default)s)")
        if name == "core":
            continue
        kept = name.startswith("limit") or name in (
            "compare",
            "w5",
            "w5-restart",
            "idle",
            "processes",
            "growth",
            "analytics",
            "http",
            "studio",
        )
        stores = tuple(store for store in STORES if not (kept and store == "memory"))
        sizes = BENCHES[name].sizes if name in BENCHES else BENCHES["w1"].sizes
        default = " and ".join(f"{size:,}" for size in sizes)
        bench.add_argument("--store", choices=stores, default="sqlite", help="where to write (default: %(default)s)")
        bench.add_argument(
            "--url", help=f"a PostgreSQL server (default: {VARIABLE}, or one that is started for the run)"
        )
        bench.add_argument("--n", type=_positive, help=f"how many (default: {default})")
        bench.add_argument("--dir", type=Path, help="a folder on a real disk, for the runs' own folders")
        bench.add_argument("--chunk", type=_positive, default=1_000, help="messages sent together (%(default)s)")
        bench.add_argument("--workers", type=_positive, default=0, help="worker processes for w1 (default: none)")
        bench.add_argument("--batch", type=_positive, default=200, help="steps per commit of the limit (%(default)s)")
        bench.add_argument(
            "--tuned", action="store_true", help="set the process up as `mainspring worker` does its own"
        )
        if name in BENCHES and BENCHES[name].section is not None:
            bench.add_argument("--into", type=Path, help="a page to put the result into, as bench/RESULTS.md")
        if name in BENCHES and BENCHES[name].plot is not None:
            bench.add_argument("--svg", type=Path, help="where to write a picture of the result")
        if name == "growth":
            bench.add_argument(
                "--axis", choices=("all", *AXES), default="all", help="what grows (default: %(default)s)"
            )
        bench.add_argument("--switch-interval", type=float, help="seconds, for sys.setswitchinterval (default: none)")
    return parser


def _results(name: str, settings: Settings, n: int | None, repeats: int) -> list[Figures]:
    """Run a bench at its sizes, one after the other in every round, and return a result for each."""
    bench = BENCHES[name]
    sizes = bench.sizes if n is None else (n,)
    rounds: dict[int, list[Figures]] = {size: [] for size in sizes}
    for number in range(repeats):
        for size in sizes:
            _tell(f"{name}, n = {size:,}, round {number + 1} of {repeats}")
            rounds[size].append(one_round(name, structs.replace(settings, n=size)))
    results = [result(name, settings.store, size, bench.figure, rounds[size]) for size in sizes]
    if len(sizes) > 1:
        first, last = results[0], results[-1]
        last["times_longer"] = round(last[bench.figure] / first[bench.figure], 3)
    return results


def _end(*_: object) -> None:
    raise SystemExit(143)


def _emit(figures: Figures, *, as_json: bool) -> None:
    _tell("")
    emit(figures, as_json=as_json)


def _tell(what: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{what}")
        sys.stderr.flush()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1")
    return number


if __name__ == "__main__":
    main()

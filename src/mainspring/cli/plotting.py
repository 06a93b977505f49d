"""Pictures of figures as files."""

from __future__ import annotations

from pathlib import Path

import click

from mainspring.analysis.figures.charts import page_of, plots_of
from mainspring.analysis.figures.figures import Figures
from mainspring.cli.failures import MisuseError
from mainspring.cli.output import counted


def write_plots(figures: Figures, folder: Path, *, as_png: bool) -> None:
    """Write a file for each picture and a page that shows all of them; what is there is overwritten."""
    plots = plots_of(figures)
    ending = "png" if as_png else "svg"
    files = {f"{plot.name}.{ending}": _png(plot.svg) if as_png else plot.svg.encode() for plot in plots}
    page = page_of(figures, {f"{plot.name}.{ending}": plot.name for plot in plots})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        (folder / "index.html").write_text(page, "utf-8")
    except OSError as error:
        raise MisuseError(f"The pictures cannot be written to {folder}: {error}") from None
    click.echo(f"{counted(len(files), 'picture')} in {folder}, shown by {folder / 'index.html'}", err=True)


def _png(svg: str) -> bytes:
    try:
        import resvg_py  # noqa: PLC0415  an extra
    except ImportError:
        raise MisuseError(
            "PNG needs resvg, which is not installed: pip install 'mainspring[plots]'. Without --png, SVG is written."
        ) from None
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=2))

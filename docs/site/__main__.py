"""`python -m docs.site`: write the pages that come from code, then build the site into site/."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from docs.site import content, figures, names, studio_types, tables
from docs.site.asking import asking
from docs.site.staging import ROOT, stage

STAGE = ROOT / "build/docs"
SITE = ROOT / "site"


def write_pages() -> None:
    """Write the pages of the reference that come from code, and the figures that others show."""
    names.PAGE.write_text(names.page())
    tables.PAGE.write_text(tables.page())
    content.PAGE.write_text(content.page())
    studio_types.PAGE.write_text(studio_types.page())
    for page in figures.PAGES:
        page.write_text(figures.filled(page.read_text()))


def sphinx(builder: str, pages: Path, into: Path) -> int:
    """Run Sphinx over staged pages. Warnings are errors."""
    from sphinx.cmd.build import build_main  # noqa: PLC0415  a second to import, and of no use to those who only write

    settings = str(Path(__file__).parent)
    doctrees = str(pages.with_name(f"{pages.name}-trees"))
    options = ["-b", builder, "-c", settings, "-d", doctrees, "-E", "-q", "-W", "--keep-going", "-j", "auto"]
    return build_main([*options, str(pages), str(into)])


def build(into: Path, stage_in: Path) -> int:
    """Build the site. Whatever asks somebody else for something is an error too."""
    shutil.rmtree(stage_in, ignore_errors=True)
    stage(stage_in)
    failed = sphinx("html", stage_in, into)
    for found in asking(into):
        sys.stderr.write(f"asks somebody else: {found}\n")
        failed = 1
    return failed


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("--pages", action="store_true", help="write the pages that come from code, and build nothing")
    asked = parser.parse_args()
    write_pages()
    if asked.pages:
        return 0
    shutil.rmtree(SITE, ignore_errors=True)
    failed = build(SITE, STAGE)
    if not failed:
        sys.stdout.write(f"the site begins at {(SITE / 'index.html').relative_to(ROOT)}\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())

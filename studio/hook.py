"""Builds the studio's page into the wheel and the source distribution, so that nobody who installs them needs Node."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))
import make_page as page


class PageHook(BuildHookInterface[Any]):
    """Builds the page. An editable installation does without: `make studio` builds it when it is wanted."""

    def dependencies(self) -> list[str]:
        """Ask for Node where it is needed and the machine has none."""
        return [] if page.is_built(page.digest()) or page.has_node() else [page.NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, before files are collected."""
        if version != "editable":
            self.app.display_info(page.build())

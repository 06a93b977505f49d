"""Where the page is, which browser there is, and why tests are skipped where one of both is missing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent.parent
SOURCES: Final = ROOT / "studio"
PAGE: Final = ROOT / "src" / "mainspring" / "web" / "page"
CHROMIUM: Final = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)

needs_page = pytest.mark.skipif(not (PAGE / "index.html").is_file(), reason="the page is not built: make studio")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: make browser")

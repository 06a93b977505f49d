"""Where things are in this checkout."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent

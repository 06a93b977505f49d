"""The app: what users work with. The only ring that wires."""

from mainspring.app.app import Mainspring
from mainspring.app.blocking import Blocking, BlockingApp
from mainspring.app.instance import Instance, Receipt

__all__ = ["Blocking", "BlockingApp", "Instance", "Mainspring", "Receipt"]

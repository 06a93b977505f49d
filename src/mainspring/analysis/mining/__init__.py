"""What instances did, mined from their streams: the states that they were in, the steps between them, and the times.

Only names and times are read, never a message. An input's row names the state after its step, so no state is folded.
What rows do not tell is said in the notes, and never guessed:

- **Resets, beginnings anew, migrations** are no steps of the workflow. The instance goes on in the state in which it
  was at that version; what it did before did happen, and is counted.
- **A compensation** that was carried out names no state. The instance is taken to have stayed where it was, unless it
  ended by it: then its row says where.
- **A stream with gaps** (history that is not kept) tells no step whose beginning is gone.

    found     what comes of it: states, kinds of steps, notes
    miner     counts what all instances have in common
    walk      one instance's way through its stream, told to a miner
    pages     many of them, page by page, or a sample
"""

from mainspring.analysis.mining.found import BEGIN, Mined, MinedState, MinedStep
from mainspring.analysis.mining.miner import Miner
from mainspring.analysis.mining.pages import mine

__all__ = ["BEGIN", "Mined", "MinedState", "MinedStep", "Miner", "mine"]

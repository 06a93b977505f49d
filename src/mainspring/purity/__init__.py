"""Is a workflow pure? decide and evolve must depend on their arguments only, and change nothing.

    rules          which calls touch the clock, randomness or the outside, and what to do instead
    names          what a name in a function's source really stands for
    sets           which values are sets, and where their order decides
    owners         which names of a function hold values that are not its own to change
    reader         one function, read for what is impure in it
    check          a whole workflow, read without running it: check_purity
    task_answers   which inputs answer a workflow's tasks, read in the same way
    guard          a block of code, watched while it runs: purity_guard
    guarding       a workflow whose decide and evolve are watched so: guarded_workflow

Check and guard complement each other. Reading sees every branch, but not behind functions of other libraries; watching
sees through those, but only what was run.
"""

from mainspring.purity.check import Finding, check_purity
from mainspring.purity.guard import PurityGuard, purity_guard

__all__ = ["Finding", "PurityGuard", "check_purity", "purity_guard"]

"""What can go wrong in a flow."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.errors.base import MainspringError


class FlowError(MainspringError):
    """A flow's code does what a flow cannot do. Its instance is suspended, and nothing of the step is recorded.

    >>> str(FlowError("Orders waits for nothing", "Await a step."))
    'Orders waits for nothing. Await a step.'
    """

    def __init__(self, problem: str, fix: str) -> None:
        self.problem = problem
        self.fix = fix
        super().__init__(f"{problem}. {fix}")


class DriftError(FlowError):
    """A flow's code asks for something else than what is recorded of an instance that began with other code.

    `recorded` is what stands in the stream and is not asked for any more, with its positions; `asked` what the code
    asks for instead, with its lines. Nothing was sent, and the input is kept.

    >>> print(DriftError("fulfil", [(3, "charge(cents=5)")], [("charge(cents=6)", "shop.py:7 in fulfil")]))
    fulfil: the code is not that with which this instance began.
      recorded, and no longer asked for: charge(cents=5) at position 3
      asked for, and not recorded: charge(cents=6) at shop.py:7 in fulfil
    Deploy the code that it began with, as version 1 beside the new one as version 2; or let it go on with \
drift="adopt"; or reset it to a position before.
    """

    def __init__(self, flow: str, recorded: Sequence[tuple[int, str]], asked: Sequence[tuple[str, str]]) -> None:
        self.flow = flow
        self.recorded = tuple(recorded)
        self.asked = tuple(asked)
        head = f"{flow}: the code is not that with which this instance began."
        lines = list[str]()
        lines += [f"  recorded, and no longer asked for: {what} at position {place}" for place, what in recorded]
        lines += [f"  asked for, and not recorded: {what} at {place}" for what, place in asked]
        self.difference = "\n".join(("its code is not that with which this instance began", *lines))
        """What differs, without what to do about it."""
        lines.insert(0, head)
        fix = (
            "Deploy the code that it began with, as version 1 beside the new one as version 2; or let it go on with "
            'drift="adopt"; or reset it to a position before.'
        )
        super().__init__("\n".join(lines), fix)
        self.args = ("\n".join([*lines, fix]),)

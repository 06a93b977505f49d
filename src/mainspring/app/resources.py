"""Resources: what handlers find as `context.resources`, declared before an app starts and open while it works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import Any, TypeVar

from mainspring.errors import WiringError

F = TypeVar("F", bound=Callable[..., Any])


class Resources:
    """The resources of an app, by name. `opened` has their values: one mapping, which handlers keep.

    >>> Resources().with_stand_ins({"bank": "a stub"}).names
    ['bank']
    """

    def __init__(self) -> None:
        self._factories: dict[str, Callable[[], AbstractAsyncContextManager[Any]]] = {}
        self.opened: dict[str, Any] = {}

    @property
    def names(self) -> list[str]:
        """Their names, in the order in which they are opened."""
        return list(self._factories)

    def declare(self, name: str) -> Callable[[F], F]:
        """Return a decorator that registers an async context manager."""

        def register(factory: F) -> F:
            if name in self._factories:
                raise WiringError(f"Two resources are named {name!r}", "Name one of them otherwise.")
            self._factories[name] = factory
            return factory

        return register

    async def open(self, exits: AsyncExitStack) -> None:
        """Open all of them, to be closed with a stack."""
        for name, factory in self._factories.items():
            self.opened[name] = await exits.enter_async_context(factory())

    def with_stand_ins(self, stand_ins: Mapping[str, Any]) -> Resources:
        """Return the same with other values for some of them, or some more."""
        stood_in = Resources()
        stood_in._factories = {**self._factories}
        stood_in._factories.update({name: lambda value=value: nullcontext(value) for name, value in stand_ins.items()})
        return stood_in

"""What the core hands out is a value: whoever gets it cannot change it for others."""

import pkgutil
from importlib import import_module
from typing import Any

from msgspec import Struct

import mainspring.core


def records() -> list[type[Any]]:
    modules = [import_module(f"mainspring.core.{each.name}") for each in pkgutil.iter_modules(mainspring.core.__path__)]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, Struct) and each.__module__.startswith("mainspring.core")]


def test_no_record_can_be_changed() -> None:
    assert records()
    assert [each.__name__ for each in records() if not each.__struct_config__.frozen] == []

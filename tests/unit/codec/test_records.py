"""What the codec hands out is a value: whoever gets it cannot change it for others."""

import pkgutil
from importlib import import_module
from typing import Any

from msgspec import Struct

import mainspring.codec
from mainspring.codec import limits


def records() -> list[type[Any]]:
    modules = [
        import_module(f"mainspring.codec.{each.name}") for each in pkgutil.iter_modules(mainspring.codec.__path__)
    ]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, Struct) and each.__module__.startswith("mainspring.codec")]


def test_the_limits_are_those_that_people_were_told() -> None:
    assert (limits.BODY_LIMIT_BYTES, limits.STATE_LIMIT_BYTES, limits.WARN_FRACTION) == (2_097_152, 8_388_608, 4)
    assert (limits.INTEGER_MIN, limits.INTEGER_MAX) == (-9_223_372_036_854_775_808, 9_223_372_036_854_775_807)
    assert len(str(limits.INTEGER_MIN)) == limits.INTEGER_CHARACTERS
    assert (limits.NESTING_LEVELS, limits.SHOWN_CHARACTERS) == (64, 200)


def test_no_record_can_be_changed() -> None:
    assert records()
    assert [each.__name__ for each in records() if not each.__struct_config__.frozen] == []

"""What the core hands out is a value: whoever gets it cannot change it for others."""

import pkgutil
from dataclasses import is_dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any

from msgspec import Struct

import mainspring.core
from mainspring.core import decisions
from mainspring.core.definition import NAME_CHARACTERS
from mainspring.core.difference import SHOWN_CHARACTERS
from mainspring.core.route import ID_CHARACTERS
from mainspring.core.step import OUTPUTS_PER_STEP
from mainspring.core.type_parameters import ALIASES_IN_A_ROW


def records() -> list[type[Any]]:
    modules = [import_module(f"mainspring.core.{each.name}") for each in pkgutil.iter_modules(mainspring.core.__path__)]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    own = [each for each in found if each.__module__.startswith("mainspring.core")]
    return [each for each in own if issubclass(each, Struct) or is_dataclass(each)]


def is_frozen(record: type[Any]) -> bool:
    return (
        record.__struct_config__.frozen if issubclass(record, Struct) else vars(record)["__dataclass_params__"].frozen
    )


def test_the_limits_are_those_that_people_were_told() -> None:
    assert (decisions.KEY_CHARACTERS, decisions.REASON_CHARACTERS, decisions.TITLE_CHARACTERS) == (1_000, 10_000, 1_000)
    assert (decisions.DATA_VALUES, decisions.FAN_OUT_MOST) == (100, 50_000)
    assert timedelta(days=365_000) == decisions.LONGEST_DELAY
    assert (NAME_CHARACTERS, ID_CHARACTERS, OUTPUTS_PER_STEP) == (200, 1_000, 2_000)
    assert (SHOWN_CHARACTERS, ALIASES_IN_A_ROW) == (400, 20)


def test_no_record_can_be_changed() -> None:
    assert records()
    assert [each.__name__ for each in records() if not is_frozen(each)] == []

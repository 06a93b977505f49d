"""A role of the port has one file name, in the port and in every store that writes it."""

from collections import Counter
from importlib import import_module
from inspect import isfunction
from pathlib import Path

import mainspring
from mainspring.port.store import Store

SOURCE = Path(mainspring.__file__).parent
ROLES = {path.stem for path in (SOURCE / "port/roles").glob("[a-z]*.py")}


def files(store: str) -> set[str]:
    return {path.stem for path in (SOURCE / "stores" / store).glob("*.py")}


def test_each_role_is_a_file_of_the_same_name_in_memory_and_for_sql() -> None:
    assert len(ROLES) == 8
    assert files("memory") >= ROLES
    assert files("sql") | (files("sqlite") & files("postgres")) >= ROLES


def test_what_a_commit_needs_of_a_store_is_in_files_of_the_same_names() -> None:
    for store in ("memory", "sqlite", "postgres"):
        assert files(store) >= {"facts", "changes", "store", "work", "workers", "tasks"}


def test_what_only_a_database_needs_is_in_files_of_the_same_names() -> None:
    both = {"commit", "dialect", "faults", "loans", "schema", "statements", "examination", "transaction"}
    for store in ("sqlite", "postgres"):
        assert files(store) >= both


def test_every_verb_has_one_role() -> None:
    verbs: Counter[str] = Counter()
    for role in ROLES:
        protocol = getattr(import_module(f"mainspring.port.roles.{role}"), role.capitalize())
        verbs.update(name for name, each in vars(protocol).items() if isfunction(each) or isinstance(each, property))
    own = {name for name in verbs if not name.startswith("_")}
    assert {name for name in own if verbs[name] > 1} == set()
    assert own == {name for name in dir(Store) if not name.startswith("_")}

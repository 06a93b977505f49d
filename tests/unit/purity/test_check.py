from __future__ import annotations

import importlib
import importlib.util
import itertools
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mainspring.purity import Finding, check_purity
from mainspring.testing.samples import Counter
from tests.unit.purity import corpus, corpus_of_sets
from tests.unit.purity.corpus import Snippet

IMPURE = corpus.IMPURE | {f"sets: {name}": snippet for name, snippet in corpus_of_sets.IMPURE.items()}
PURE = corpus.PURE | {f"sets: {name}": snippet for name, snippet in corpus_of_sets.PURE.items()}

_numbers = itertools.count()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("snippet_"):
            del sys.modules[name]


def load(snippet: Snippet, directory: Path) -> ModuleType:
    path = directory / f"snippet_{next(_numbers)}.py"
    path.write_text(snippet.source())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def findings(snippet: Snippet, directory: Path) -> list[Finding]:
    return check_purity(load(snippet, directory).Flow)


@pytest.mark.parametrize("name", IMPURE)
def test_what_is_impure_is_found_with_its_rule(name: str, directory: Path) -> None:
    assert [(f.rule, f.what) for f in findings(IMPURE[name], directory)] == list(IMPURE[name].expected)


@pytest.mark.parametrize("name", PURE)
def test_what_is_pure_raises_no_alarm(name: str, directory: Path) -> None:
    assert findings(PURE[name], directory) == []


def test_a_finding_says_where_it_is(directory: Path) -> None:
    snippet = IMPURE["a clock in a helper"]
    (finding,) = findings(snippet, directory)
    line = snippet.source().splitlines().index("    return [Send(Done(str(time.time())))]") + 1
    assert (Path(finding.file).parent, finding.line, finding.where) == (directory, line, "stamp")


def test_an_instances_own_attributes_are_looked_at(directory: Path) -> None:
    body = "return [] if self.rng.random() > 0.5 else None"
    flow = load(Snippet(body, "import random"), directory).Flow()
    assert check_purity(flow) == []
    flow.rng = random.Random(7)  # noqa: S311  a planted bug
    assert [f.what for f in check_purity(flow)] == ["calls random.random"]


def test_a_decide_that_is_inherited_is_read(directory: Path) -> None:
    class Child(load(IMPURE["print"], directory).Flow):
        pass

    assert [f.what for f in check_purity(Child)] == ["calls print"]


def test_a_workflow_without_source_is_not_taken_for_pure(monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, Any] = {"__name__": "nowhere"}
    source = compile(Snippet().source(), "<nowhere>", "exec")
    monkeypatch.setitem(sys.modules, "nowhere", ModuleType("nowhere"))
    exec(source, namespace)  # noqa: S102  that is the case
    assert {f.rule for f in check_purity(namespace["Flow"])} == {"source"}


def test_a_helper_that_calls_itself_is_read_once(directory: Path) -> None:
    top = "def down(n):\n    return [] if n == 0 else down(n - 1)"
    assert findings(Snippet("return down(3)", top), directory) == []


def test_a_helper_in_another_module_of_the_package_is_read(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = directory / "snippet_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "helpers.py").write_text("import time\ndef stamp():\n    return time.time()\n")
    (package / "flow.py").write_text(Snippet("return stamp() and []", "from .helpers import stamp").source())
    monkeypatch.syspath_prepend(directory)
    (finding,) = check_purity(importlib.import_module("snippet_package.flow").Flow)
    assert (Path(finding.file).name, finding.where, finding.rule) == ("helpers.py", "stamp", "clock")


def test_a_helper_of_another_package_is_left_to_the_guard(directory: Path) -> None:
    assert findings(Snippet("return shlex.quote(message.id) and []", "import shlex"), directory) == []


def test_all_examples_of_the_kit_are_pure() -> None:
    assert check_purity(Counter) == []


def test_findings_are_listed_in_the_order_of_the_source(directory: Path) -> None:
    body = "print(message)\ntime.sleep(1)\nstate.items.clear()\nreturn []"
    assert [f.rule for f in findings(Snippet(body, "import time"), directory)] == ["io", "clock", "mutation"]

"""Files of histories as pytest collects them."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mainspring.app import Mainspring
from mainspring.app.histories import History, held, read_histories
from mainspring.app.internals import internals_of
from mainspring.errors import MainspringError
from mainspring.testing.histories import HistoryChanged


class Collecting:
    """Knows which files hold histories, and makes pytest collect them.

    Those that were `asked` for on the command line are always collected. Those that the settings name are collected
    wherever pytest walks past them, and on a run that names no tests of its own.
    """

    def __init__(self, config: pytest.Config, patterns: Sequence[str], *, asked: bool) -> None:
        root = config.rootpath
        self._files = sorted({path.resolve() for pattern in patterns for path in root.glob(pattern)})
        if not self._files:
            raise pytest.UsageError(f"No file of histories is like {' or '.join(patterns)} in {root}.")
        self._address: str = config.getoption("mainspring_app") or config.getini("mainspring_app")
        if not self._address:
            raise pytest.UsageError("Histories of which app? Set mainspring_app = module:app, or use --mainspring-app.")
        if asked or config.args_source is not pytest.Config.ArgsSource.ARGS:
            # A worker of xdist gets the arguments of the process that started it.
            config.args += [str(path) for path in self._files if str(path) not in config.args]

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a file, if it is one of them."""
        if file_path.suffix != ".json" or file_path.resolve() not in self._files:
            return None
        file: HistoriesFile = HistoriesFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]
        file.address = self._address
        return file


class HistoriesFile(pytest.File):
    """A file of histories."""

    address: str

    def collect(self) -> Iterator[pytest.Item]:
        try:
            app, histories = _app(self.address), read_histories(self.path)
        except (MainspringError, ImportError) as error:
            raise self.CollectError(str(error)) from None
        for history in histories:
            item: HistoryItem = HistoryItem.from_parent(self, name=str(history))  # pyright: ignore[reportUnknownMemberType]
            item.history, item.app = history, app
            yield item


class HistoryItem(pytest.Item):
    """One instance, decided and folded once more."""

    history: History
    app: Mainspring

    def runtest(self) -> None:
        for one in held(internals_of(self.app).registry, [self.history], self.path):
            if one.changed is not None:
                raise HistoryChanged(one.changed.text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, HistoryChanged | MainspringError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def _app(address: str) -> Mainspring:
    try:
        found = pkgutil.resolve_name(address)
    except (ValueError, ImportError, AttributeError) as error:
        raise ImportError(f"{address} cannot be imported: {error}. Is it on pytest's pythonpath?") from error
    if not isinstance(found, Mainspring):
        raise ImportError(  # noqa: TRY004  the address is what is wrong
            f"{address} is a {type(found).__name__}, not a Mainspring."
        )
    return found

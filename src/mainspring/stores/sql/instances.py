"""Lists of instances: all that match, or what one bounded look finds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from msgspec.structs import astuple

from mainspring.errors import DamagedRecordError
from mainspring.logs import logger
from mainspring.port.attributes import AttributeFilter, AttributeRow
from mainspring.port.pages import Page
from mainspring.port.records import InstanceFilter, InstanceRow, Ref, Tally
from mainspring.port.searches import ATTRIBUTE_NAMES, SEARCHED, AttributeName, Found
from mainspring.stores.sql.dialect import Values, packed
from mainspring.stores.sql.dialogue import Dialogue, Row, Verbs, read, read_at_one_moment

FEW: Final = 1_000
"""How many an index may find for the others not to be looked at; of more, enough lie close together."""
LAST_KEY: Final = 2**63 - 1

_log = logger(__name__)


class InstanceVerbs(Verbs):
    """The verbs of instances."""

    @read_at_one_moment
    def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> Dialogue[list[InstanceRow]]:
        page = Page[Row, InstanceRow](limit, self.dialect.instance)
        few = yield from self._few(where)
        while page.wants:
            # Rows with a negative key are no instances.
            behind = page.last[0] if page.last else max(after, 0)
            page.take((yield self._list(where, page.wants, behind, few)))
        return page.records

    def _list(self, where: InstanceFilter, limit: int, after: int, few: list[int] | None) -> Values:
        asked = (after, *_plain(where), limit)
        if few is not None:
            return ("search_keys", *asked, self.dialect.values(few), _conditions(where.attributes))
        if not where.attributes:
            return ("search", *asked, LAST_KEY, packed(()))
        # An equal text narrows more, and its instances come sorted.
        first, *others = sorted(where.attributes, key=lambda wanted: wanted.text is None)
        if first.text is None:
            number = (first.name, first.kind, first.low, first.high)
            return ("search_by_number", *asked, LAST_KEY, _conditions(others), *number)
        return ("search_by_text", *asked, LAST_KEY, _conditions(others), first.name, first.text)

    @read_at_one_moment
    def search(
        self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False
    ) -> Dialogue[Found]:
        way = "_newest" if newest else ""
        ((last,),) = yield ("last_key",)
        begin = (last + 1 if after is None else min(after, last + 1)) if newest else max(after or 0, 0)
        asked = (begin, *_plain(where), limit)
        few = yield from self._few(where)
        if few is not None:
            found = yield f"search_keys{way}", *asked, self.dialect.values(few), _conditions(where.attributes)
            return self._found(found, limit, None)
        text = next((wanted for wanted in where.attributes if wanted.text is not None), None)
        if text is None:
            until = _until(begin, last, newest)
            found = yield f"search{way}", *asked, _bound(until, newest), _conditions(where.attributes)
        else:
            spot = yield f"nth_by_text{way}", begin, SEARCHED - 1, text.name, text.text
            until = spot[0][0] if spot else None
            others = _conditions(wanted for wanted in where.attributes if wanted is not text)
            found = yield f"search_by_text{way}", *asked, _bound(until, newest), others, text.name, text.text
        return self._found(found, limit, until)

    def _few(self, where: InstanceFilter) -> Dialogue[list[int] | None]:
        """Return the keys of all instances that can match, if an index says that they are few."""
        for statement in self.dialect.narrowing(where, FEW + 1):
            keys = [key for (key,) in (yield statement)]
            if len(keys) <= FEW:
                return keys
        return None

    def _found(self, found: Any, limit: int, until: int | None) -> Found:
        """Return the rows that can be read. Behind a full page, the next look begins at its end."""
        rows: list[InstanceRow] = []
        for row in found:
            try:
                rows.append(self.dialect.instance(row))
            except DamagedRecordError as error:
                _log.error("left out of a search: %s", error)
        return Found(rows, found[-1][0] if len(found) == limit else until)

    @read
    def attributes(self, ref: Ref) -> Dialogue[list[AttributeRow]]:
        return [AttributeRow(*row) for row in (yield "attributes", *self.dialect.name(ref))]

    @read
    def attribute_names(self) -> Dialogue[list[AttributeName]]:
        return cast("list[AttributeName]", [tuple(row) for row in (yield "attribute_names", ATTRIBUTE_NAMES)])

    @read
    def tally(self) -> Dialogue[Tally]:
        return {(workflow, status): count for workflow, status, count in (yield ("tally",))}


def _plain(where: InstanceFilter) -> Values:
    """Return all that is asked for but the attributes, as statements take it."""
    times = (where.created_from_us, where.created_to_us, where.updated_from_us, where.updated_to_us)
    return (where.workflow, where.status, where.state, where.id_prefix, where.error, *times, where.workflow_version)


def _conditions(attributes: Iterable[AttributeFilter]) -> str:
    return packed([astuple(wanted) for wanted in attributes])


def _until(begin: int, last: int, newest: bool) -> int | None:
    """Return the last key of a look at all instances, if there are more behind it."""
    if newest:
        return begin - SEARCHED if begin - SEARCHED > 1 else None
    return begin + SEARCHED if begin + SEARCHED < last else None


def _bound(until: int | None, newest: bool) -> int:
    # No instance has the key 0.
    return until if until is not None else 1 if newest else LAST_KEY

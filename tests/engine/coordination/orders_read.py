"""Read models over the shop, and what they must come to: the pure fold of the feed."""

from dataclasses import dataclass
from typing import Any

from mainspring import FeedEntry, Mainspring, Received
from mainspring.app.internals import internals_of
from mainspring.engine.projections.folding import Folding
from mainspring.engine.this_worker import ThisWorker
from tests.engine.shop import Charge, Charged, Note, PlaceOrder, Ship, Shop


@dataclass(frozen=True)
class Order:
    amount: int
    notes: tuple[str, ...] = ()
    charged: bool = False


def fold(document: Order | None, entry: FeedEntry) -> Order | None:
    match document, entry.event:
        case None, Received(PlaceOrder(_, amount)):
            return Order(amount)
        case Order(amount, notes, charged), Received(Note(_, text)):
            return None if text == "drop" else Order(amount, (*notes, text), charged)
        case Order(amount, notes), Received(Charged()):
            return Order(amount, notes, charged=True)
        case _:
            return document


def by_order(entry: FeedEntry) -> str | None:
    return None if entry.input is None else entry.instance


def shop(app: Mainspring, **options: Any) -> Mainspring:
    app.add(Shop())
    app.external(Charge, Ship)
    app.projections.add(name="orders", key=by_order, **options)(fold)
    return app


async def expected(app: Mainspring, up_to: int | None = None) -> dict[str, Order]:
    """Return the fold of the feed, up to a position."""
    projection = internals_of(app).registry.projections["orders"]
    folding = Folding(projection, internals_of(app).engine.store, internals_of(app).registry, ThisWorker())
    documents: dict[str, Order] = {}
    page = await internals_of(app).engine.store.feed(0, 100_000)
    for _, entry in folding._read(page):  # noqa: SLF001  the same decoding, none of the rest
        if entry is None or (up_to is not None and entry.position > up_to) or by_order(entry) is None:
            continue
        document = fold(documents.pop(entry.instance, None), entry)
        if document is not None:
            documents[entry.instance] = document
    return dict(sorted(documents.items()))


async def kept(app: Mainspring) -> dict[str, Order]:
    """Return all documents, page by page."""
    found: dict[str, Order] = {}
    while page := await app.projections("orders").list(limit=7, after=max(found, default="")):
        found.update(page)
    return found

"""An error is a kind that can be read and searched, and a text that is sealed where a seal hides."""

from __future__ import annotations

import asyncio
import gc
import logging
from datetime import timedelta
from pathlib import Path

import pytest

from mainspring import Breaker, Mainspring, Retry
from mainspring.app.internals import internals_of
from mainspring.app.viewing import attempt_view
from mainspring.errors import (
    CannotBeginError,
    InvalidStateError,
    LeftError,
    RouteError,
    TooManyOutputsError,
    UndeclaredInputError,
    UnknownTransitionError,
    kinds,
    told,
)
from mainspring.errors.kinds import CANDIDATES, kind_in, kind_of
from mainspring.logs import Quoted, discretion, logger
from mainspring.port.attempts import Attempt
from mainspring.port.records import Ref, Unit
from mainspring.sealing import About, Compressed, Encrypted, FileKeys, Seal, StaticKeys
from mainspring.views import DeadLetter
from tests.proof.secrets.vault import Child, Do, Open, Opened, Ring, Vault, Work, add_all
from tests.support.postgres.server import postgres_url
from tests.support.running import run
from tests.support.waiting import until

KEYS = StaticKeys({"2026": bytes(range(32))})
CARD = "4111-2222"


class LocalError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError(f"{CARD} is no good"), "ValueError"),
        (LocalError(CARD), "LocalError"),
        (TimeoutError(), "TimeoutError"),
        (
            UnknownTransitionError("Vault", Do("v", "x", CARD), Opened(CARD)),
            "UnknownTransitionError: Vault has no transition for Do in state Opened.",
        ),
        (
            InvalidStateError("Vault", CARD, event=CARD, state=CARD, declared=[Opened]),
            "InvalidStateError",
        ),
        (RouteError("Vault", Open("v", CARD), KeyError(CARD)), "RouteError"),
        (
            UndeclaredInputError("Vault", Ring("v", CARD), Opened(CARD), [Open, Do]),
            "UndeclaredInputError: Vault does not take Ring: its inputs are Open, Do.",
        ),
        (
            CannotBeginError("Vault", Do("v", "x", CARD), Opened(CARD), []),
            "CannotBeginError: Vault cannot begin with Do: it begins with none.",
        ),
        (
            TooManyOutputsError("Vault", 1_001, 1_000, message=Open("v", CARD), state=Opened(CARD)),
            "TooManyOutputsError: Vault decided 1,001 things in one step; the limit is 1,000.",
        ),
        (
            LeftError("Vault", "decide", SystemExit(CARD), message=Open("v", CARD), state=Opened(CARD)),
            "LeftError: Vault left decide by SystemExit.",
        ),
    ],
)
def test_a_kind_has_class_rule_and_names_and_no_value(error: Exception, kind: str) -> None:
    assert kind_of(error) == kind_in(told(error)) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{CARD}: refused", ""),
        (f"Card{CARD[:4]}: refused", ""),
        (f"the card {CARD} failed", ""),
        (f"Work failed for good: ValueError: {CARD}", "Work failed for good: ValueError"),
        (f"Work failed for good: {CARD}", ""),
        (f"its child Child/c-1 has failed: {CARD}", "its child Child/c-1 has failed"),
        (f"charge: ValueError: {CARD}", "ValueError"),
        ("ValueError (what it says was erased)", "ValueError"),
        ("InvalidStateError (what it says was erased)", "InvalidStateError"),
        # Authors and libraries have classes of the same names, and say in them what they like.
        ("DecodeError: hunter2", "DecodeError"),
        ("EncodeError: hunter2: no", "EncodeError"),
        ("RouteError: Smith has no route", "RouteError"),
        ("InvalidStateError: alice is gone", "InvalidStateError"),
        ("ErasedError: alice", "ErasedError"),
        (f"LeftError: card {CARD} left", "LeftError"),
        ("LeftError: Smith left evolve by bus. And came back", "LeftError"),
        (f"UnknownTransitionError: Smith has no transition for {CARD} in state x y.", "UnknownTransitionError"),
        (f"TooManyOutputsError: {CARD}", "TooManyOutputsError"),
        (
            "UnknownTransitionError: V has no transition for A in state B. (what it says was erased)",
            "UnknownTransitionError: V has no transition for A in state B.",
        ),
        ("UnknownTransitionError: V has no transition for A in state B.",) * 2,
        (
            f"Vault/a b version 2 (Received Open) at position 7: KeyError: '{CARD}'",
            "Vault/a b version 2 (Received Open) at position 7: KeyError",
        ),
        (
            f"Vault/a b position 2 (Received Open) at 7 of the feed: KeyError: '{CARD}'",
            "Vault/a b position 2 (Received Open) at 7 of the feed: KeyError",
        ),
    ],
)
def test_a_kind_is_read_out_of_a_text_only_where_no_value_can_be(text: str, kind: str) -> None:
    assert kind_in(text) == kind


@pytest.mark.parametrize("text", ["its child C/a has failed: " + "a: " * 3_300, "a: b: ValueError: c", "ValueError: c"])
def test_no_text_makes_it_look_for_classes_more_than_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind_in("ValueError")
    walks: list[None] = []
    learn = kinds._learn  # noqa: SLF001  what takes long, however short the text

    def counted() -> None:
        walks.append(None)
        learn()

    monkeypatch.setattr(kinds, "_learn", counted)
    kind_in(text)
    assert len(walks) == (not text.startswith("ValueError"))


def test_a_class_is_looked_for_among_the_first_words_alone() -> None:
    assert kind_in("a: " * (CANDIDATES - 1) + f"ValueError: {CARD}") == "ValueError"
    assert kind_in("a: " * CANDIDATES + f"ValueError: {CARD}") == ""


def make(folder: Path, seal: Seal | None) -> Mainspring:
    app = Mainspring(f"sqlite:///{folder / 'vault.db'}", seal=seal)
    add_all(app)
    return app


async def suspended(app: Mainspring, id: str) -> str | None:
    await app.send(Open(id, CARD))
    await app.send(Do(id, "raises", CARD))
    return (await app.instance(Vault, id).row()).error


async def stored(folder: Path, id: str) -> str:
    """Return an error as the database has it, past the seal."""
    async with make(folder, None) as bare:
        return (await bare.instance(Vault, id).row()).error or ""


SAID = f"ValueError: {CARD} is no good"


def test_its_text_is_read_with_the_key_and_its_kind_without(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")
    seal = Encrypted(keys, subject=lambda about, _: about.instance)

    async def main() -> None:
        async with make(tmp_path, seal) as app:
            assert await suspended(app, "v") == SAID
        kept = await stored(tmp_path, "v")
        assert kept.startswith("ValueError")
        assert CARD not in kept
        keys.destroy("v")
        async with make(tmp_path, seal) as app:
            assert (await app.instance(Vault, "v").row()).error == "ValueError (what it says was erased)"
            assert [row.id for row in await app.instances(error="ValueError")] == ["v"]
            assert await app.instances(error=CARD) == []

    run(main)


def test_what_a_failed_attempt_says_is_sealed_and_erased_with_its_instance(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")
    seal = Encrypted(keys, subject=lambda about, _: about.instance)

    async def kept(seal: Seal | None) -> str | None:
        async with make(tmp_path, seal) as app:
            (one,) = await internals_of(app).engine.store.attempts(Ref("Vault", "v"), 10)
            return one.error

    async def main() -> None:
        async with make(tmp_path, seal) as app:
            await app.send(Open("v", CARD))
            key = (await app.instance(Vault, "v").row()).key
            made = Attempt(key, 3, 1, "host:4711", 1, 2, SAID)
            await internals_of(app).engine.committer.commit(Unit("Vault", "v", attempts=(made,)))
            assert await app.instance(Vault, "v").attempts() == [attempt_view(made)]
        bare = await kept(None) or ""
        assert bare.startswith("ValueError")
        assert CARD not in bare
        keys.destroy("v")
        assert await kept(seal) == "ValueError (what it says was erased)"

    run(main)


def test_what_was_written_before_the_seal_is_read_and_found_as_it_is(tmp_path: Path) -> None:
    async def main() -> None:
        async with make(tmp_path, None) as app:
            await suspended(app, "old")
        async with make(tmp_path, Encrypted(KEYS)) as app:
            assert await suspended(app, "new") == SAID
            assert [row.id for row in await app.instances(error=CARD)] == ["old"]
            assert [row.error for row in await app.instances(error="ValueError")] == [SAID, SAID]

    run(main)


def test_a_seal_that_hides_nothing_leaves_errors_and_logs_as_they_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with make(tmp_path, [Compressed(least_bytes=1)]) as app:  # pyright: ignore[reportArgumentType]  as an app takes it
            await suspended(app, "v")
            assert [row.id for row in await app.instances(error=CARD)] == ["v"]
        assert await stored(tmp_path, "v") == SAID

    run(main)
    assert SAID in caplog.text


def test_where_it_cannot_be_said_whose_it_is_its_kind_alone_is_kept(tmp_path: Path) -> None:
    def subject(about: About, body: bytes) -> str:
        if about.type == "mainspring.Error":
            raise KeyError(body)
        return about.instance

    async def main() -> None:
        async with make(tmp_path, Encrypted(FileKeys(tmp_path / "keys"), subject=subject)) as app:
            assert await suspended(app, "v") == "ValueError"
            assert (await app.instance(Vault, "v").row()).status == "suspended"

    run(main)


def test_what_opened_a_breaker_is_not_kept_by_the_instances_that_it_fails(tmp_path: Path) -> None:
    async def main() -> None:
        app = Mainspring(f"sqlite:///{tmp_path / 'vault.db'}", seal=Encrypted(KEYS))
        app.add(Vault(), Child())

        @app.handler(
            breaker=Breaker(failures=1, fail_fast=True), retry=Retry(first=timedelta(hours=1), cap=timedelta(hours=1))
        )
        async def ring(command: Ring) -> None:
            raise ConnectionError(command.card)

        app.external(Work)
        async with app:
            await app.send(Open("ann", CARD))
            await app.send(Do("ann", "breaks", CARD))
            await until(lambda: _tried(app, "ann"))
            await app.send(Open("bob", "x"))
            await app.send(Do("bob", "breaks", "x"))
            (letter,) = await until(app.dead_letters)
            assert "its breaker is open (ConnectionError)" in str(letter.error)
            assert CARD not in str(letter.error)

    run(main)


@pytest.mark.parametrize(("sealed", "said"), [(True, "ValueError"), (False, f"ValueError: ['{CARD}', 'x']")])
def test_what_a_batch_failed_on_is_kept_by_none_of_it_where_bodies_are_hidden(
    sealed: bool, said: str, tmp_path: Path
) -> None:
    async def main() -> None:
        app = Mainspring(f"sqlite:///{tmp_path / 'vault.db'}", seal=Encrypted(KEYS) if sealed else None)
        app.add(Vault(), Child())
        app.external(Work)
        begun, waiting = asyncio.Event(), asyncio.Event()

        @app.handler(batch=2, concurrency=1, retry=Retry(max_attempts=1))
        async def ring(commands: list[Ring]) -> list[None]:
            if len(commands) == 1:
                begun.set()
                await waiting.wait()  # so that the next two come together
                return [None]
            raise ValueError([command.card for command in commands])

        async with app:
            for id, card in (("first", "-"), ("ann", CARD), ("bob", "x")):
                await app.send(Open(id, card))
                await app.send(Do(id, "breaks", card))
                await begun.wait()
            waiting.set()
            letters = await until(lambda: _both(app))
            assert {letter.instance: letter.error for letter in letters} == {"Vault/ann": said, "Vault/bob": said}

    run(main)


async def _both(app: Mainspring) -> list[DeadLetter] | None:
    letters = await app.dead_letters()
    return letters if len(letters) == 2 else None


async def _tried(app: Mainspring, id: str) -> bool:
    return any(
        claim.attempts
        for claim in await internals_of(app).engine.store.outputs(Ref("Vault", id), timers=False, limit=1)
    )


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_the_longest_text_is_kept_whole(store: str, tmp_path: Path) -> None:
    async def main() -> None:
        url = f"sqlite:///{tmp_path / 'vault.db'}" if store == "sqlite" else postgres_url(tmp_path)
        app = Mainspring(url, seal=Encrypted(KEYS))
        add_all(app)
        async with app:
            await app.send(Open("v", CARD))
            await app.send(Do("v", "raises", "ö€😀" * 2_000))
            (found,) = await app.instances(error="ValueError")
            assert str(found.error).startswith("ValueError: ö€😀ö€😀")
            assert len(str(found.error)) > 4_000

    run(main)


def test_logs_tell_kinds_while_a_sealed_store_is_open_and_texts_again_when_it_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = logger("mainspring.test")

    def tell() -> str:
        caplog.clear()
        try:
            int(CARD)
        except ValueError as error:
            log.error("%s %s %d", error, Quoted(told(error)), 7, exc_info=error)  # noqa: TRY400  its arguments matter
        return logging.Formatter("%(message)s").format(caplog.records[0])

    async def main() -> None:
        said = f"invalid literal for int() with base 10: '{CARD}'"
        assert tell().startswith(f"{said} ValueError: {said} 7\nTraceback")
        async with make(tmp_path, Encrypted(KEYS)):
            text = tell()
            assert text.startswith("ValueError ValueError 7\nTraceback")
            assert f"line {tell.__code__.co_firstlineno + 3}" in text
            assert CARD not in text
        assert CARD in tell()

    run(main)
    assert not discretion.asked


def test_asyncio_quotes_no_error_while_a_sealed_store_is_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise ValueError(CARD)

    def called(_: object) -> None:
        raise ValueError(CARD)

    async def tell() -> str:
        caplog.clear()
        task = asyncio.create_task(fails())
        await asyncio.wait([task])
        del task  # nobody has asked for its exception
        gc.collect()
        asyncio.get_running_loop().call_soon(called, CARD)
        await asyncio.sleep(0)
        logging.getLogger("asyncio").warning("Executing %s took %.3f seconds", f"<Task finished result='{CARD}'>", 1.0)
        records = [record for record in caplog.records if record.name == "asyncio"]
        assert len(records) == 3
        return "\n".join(logging.Formatter("%(message)s").format(record) for record in records)

    async def main() -> None:
        assert CARD in await tell()
        async with make(tmp_path, Encrypted(KEYS)):
            text = await tell()
            assert CARD not in text
            assert text.startswith("Task exception was never retrieved\nTraceback")
            assert f"line {fails.__code__.co_firstlineno + 1}, in fails" in text
            assert "\nException in callback test_asyncio_quotes" in text
            assert text.endswith("\nExecuting <Task finished")
        assert CARD in await tell()

    run(main)


def test_every_logger_of_the_library_is_discreet() -> None:
    package = Path(__file__).parents[2] / "src" / "mainspring"
    own = {"logs.py", "cli/worker.py", "cli/loading.py"}  # the last two set up the root
    found = {str(path.relative_to(package)) for path in package.rglob("*.py") if "getLogger(" in path.read_text()}
    assert found == own

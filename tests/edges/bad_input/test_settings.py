"""Settings, URLs, the environment, files of keys, and what is typed on the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from mainspring import Mainspring
from mainspring.cli.group import commands
from mainspring.errors import DamagedRecordError, MainspringError, SettingError, StoreError, WiringError
from mainspring.sealing import Encrypted, FileKeys, StaticKeys
from mainspring.sealing.seals import About
from tests.edges.bad_input.misbehaving import Desk, Go, Note, desk
from tests.support.waiting import until

ABOUT: Final = About("Desk", "bad", "Note")

URLS: Final[dict[str, tuple[Any, type[MainspringError]]]] = {
    "empty": ("", SettingError),
    "no URL": ("desk.db", SettingError),
    "an unknown store": ("mysql://localhost/desk", SettingError),
    "sqlite without a path": ("sqlite://", SettingError),
    "sqlite on a host": ("sqlite://host/desk.db", SettingError),
    "sqlite without slashes": ("sqlite:desk.db", SettingError),
    "sqlite with one slash": ("sqlite:/desk.db", SettingError),
    "sqlite with options": ("sqlite:///desk.db?mode=ro", SettingError),
    "sqlite with half a name": ("sqlite:///desk#1.db", SettingError),
    "sqlite with NUL": ("sqlite:///a\0b.db", SettingError),
    "sqlite with a lone surrogate": ("sqlite:///\ud800.db", SettingError),
    "sqlite in no directory": ("sqlite:////no/such/directory/desk.db", StoreError),
    "sqlite on the root": ("sqlite:////", SettingError),
    "a port that is no number": ("postgresql://localhost:x/desk", SettingError),
    "a port that is too large": ("postgresql://localhost:99999/desk", SettingError),
    "half an IPv6 address": ("postgresql://[::1/desk", SettingError),
    "no schema": ("postgresql://localhost/desk?schema=", SettingError),
    "a schema of PostgreSQL's own": ("postgresql://localhost/desk?schema=pg_desk", SettingError),
    "a schema that is too long": (f"postgresql://localhost/desk?schema={'x' * 64}", SettingError),
    "no connections": ("postgresql://localhost/desk?connections=0", SettingError),
    "connections that are no number": ("postgresql://localhost/desk?connections=many", SettingError),
    "an unknown pooler": ("postgresql://localhost/desk?pooler=zzz", SettingError),
    "an unknown mode of TLS": ("postgresql://localhost:1/desk?sslmode=zzz", StoreError),
    "a server that is not there": ("postgresql://localhost:1/desk", StoreError),
    "None": (None, SettingError),
    "a number": (7, SettingError),
}


@pytest.mark.parametrize("what", URLS)
def test_a_url_that_names_no_store_is_refused_at_the_start(what: str) -> None:
    url, error = URLS[what]

    async def main() -> None:
        async with asyncio.timeout(60):
            await desk(Mainspring(url)).start()

    with pytest.raises(error) as caught:
        asyncio.run(main())
    assert str(caught.value).encode()
    assert "cannot do what it was asked" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret@localhost:x/desk",
        "postgresql://ann:secret/7@localhost:5432/desk",
        "postgresql://ann:se#secret@localhost/desk",
        "postgresql://ann:secret[@localhost/desk",
        "postgresql://localhost:x/desk?user=ann&password=secret&sslmode=require",
        "mysql://ann:secret@localhost/desk",
        "sqlite://ann:secret@localhost/desk.db",
    ],
)
def test_a_url_that_is_refused_shows_no_password(url: str) -> None:
    with pytest.raises(SettingError) as caught:
        asyncio.run(desk(Mainspring(url)).start())
    assert "secret" not in f"{caught.value} {caught.value.value}"
    assert "/desk" in str(caught.value)


# ---- keys


KEYS: Final[dict[str, Any]] = {
    "none": {},
    "one that is short": {"2026": b"short"},
    "one that is long": {"2026": bytes(33)},
    "one that is a text": {"2026": "x" * 32},
    "one without an id": {"": bytes(32)},
    "one with a long id": {"x" * 256: bytes(32)},
}


@pytest.mark.parametrize("what", KEYS)
def test_keys_that_are_none_are_refused(what: str) -> None:
    with pytest.raises(SettingError):
        StaticKeys(KEYS[what])


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)], ids=["empty", "short", "long"])
@pytest.mark.parametrize("place", [".salt", "key"])
def test_a_file_of_a_key_that_was_edited_seals_and_opens_nothing(tmp_path: Path, place: str, content: bytes) -> None:
    keys = FileKeys(tmp_path)
    sealed = Encrypted(keys).close(NOTE, ABOUT)
    [path] = tmp_path.glob("*.key")
    (path if place == "key" else tmp_path / ".salt").write_bytes(content)
    with pytest.raises(DamagedRecordError, match=r"bytes, not 32"):
        Encrypted(FileKeys(tmp_path)).open(sealed, ABOUT)
    with pytest.raises(DamagedRecordError, match=r"bytes, not 32"):
        Encrypted(FileKeys(tmp_path)).close(NOTE, ABOUT)


NOTE: Final = b'{"id":"bad"}'


def test_a_directory_of_keys_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("")
    for place in (tmp_path / "keys", tmp_path / "keys" / "below"):
        with pytest.raises(SettingError, match="The directory of keys"):
            FileKeys(place)


def test_a_subject_that_fails_is_at_fault_alone(tmp_path: Path) -> None:
    def subject(about: About, _: bytes) -> str | None:
        if about.instance == "bad":
            raise LookupError("whose is it?")
        return None

    async def main() -> None:
        seal = Encrypted(StaticKeys({"2026": bytes(32)}), subject=subject)
        async with asyncio.timeout(60), desk(Mainspring(f"sqlite:///{tmp_path / 'desk.db'}", seal=seal)) as app:
            both = await asyncio.gather(
                app.send(Go("bad")), app.send(Go("neighbour")), app.send(Go("third")), return_exceptions=True
            )
            assert [type(each).__name__ for each in both] == ["StoreError", "Receipt", "Receipt"]
            assert "whose is it?" in str(both[0])
            assert [row.id for row in await app.instances()] == ["neighbour", "third"]

    asyncio.run(main())


def test_a_body_that_no_key_opens_holds_up_its_own_instance_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path / 'desk.db'}"
    old, new = StaticKeys({"old": bytes(32)}), StaticKeys({"new": bytes(31) + b"1"})

    async def send(keys: StaticKeys, *messages: Any) -> None:
        app = desk(Mainspring(url, seal=Encrypted(keys)))
        await app.start(work=False)
        for message in messages:
            assert (await app.send(message)).status in ("stepped", "accepted")
        await app.stop()

    async def nothing_left(app: Mainspring) -> bool:
        return (await app.stats()).outbox == 0

    async def main() -> None:
        async with asyncio.timeout(60):
            await send(old, Go("bad"))
            await send(new, Go("neighbour"))
            async with desk(Mainspring(url, seal=Encrypted(new))) as app:
                # The command of the one is buried, that of the other carried out.
                await until(lambda: nothing_left(app))
                assert (await app.send(Note("neighbour"))).status == "stepped"
                with pytest.raises(DamagedRecordError, match="'old', which is not here"):
                    await app.instance(Desk, "bad").state()
                assert [letter.instance for letter in await app.dead_letters()] == ["Desk/bad"]

    asyncio.run(main())
    assert "cannot be opened" in caplog.text


# ---- the command line


MODULE: Final = """
from mainspring import Mainspring
from tests.edges.bad_input.misbehaving import desk

app = desk(Mainspring("sqlite:///desk.db"))
number = 7
"""
TYPED: Final[dict[str, tuple[tuple[str, ...], int, str]]] = {
    "no such instance": (("show", "nope"), 3, "There is no instance nope"),
    "an instance without a name": (("show", ""), 3, "There is no instance"),
    "an instance with a control character": (("show", "a\x1b[31mb"), 3, "a\\x1b[31mb"),
    "an instance with newlines": (("cancel", "a\nError: all is well"), 3, "There is no instance"),
    "an instance that is no UTF-8": (("show", "Desk/\udcff"), 3, "\\udcff"),
    "an instance of 100,000 characters": (("show", "x" * 100_000), 3, "There is no instance"),
    "an instance that is a wildcard": (("show", "%"), 3, "There is no instance %"),
    "an instance that is SQL": (("cancel", "'; DROP TABLE events; --"), 3, "There is no instance"),
    "an actor that is no UTF-8": (("send", "Go", '{"id":"bad"}', "--actor", "\udcff"), 1, "Actor '\\udcff'"),
    "an actor with newlines": (("send", "Go", '{"id":"bad"}', "--actor", "a\nb"), 1, "Actor 'a\\nb'"),
    "a message id that is empty": (("send", "Go", '{"id":"bad"}', "--id", ""), 1, "Message id ''"),
    "a message id that is too long": (("send", "Go", '{"id":"bad"}', "--id", "x" * 1_001), 1, "Message id"),
    "an instance's id with a newline": (("send", "Go", '{"id":"a\\nb"}'), 1, "Instance id 'a\\nb'"),
    "an instance's id with a bidi character": (("send", "Go", '{"id":"a\\u202eb"}'), 1, "Instance id 'a\\u202eb'"),
    "a type that nobody takes": (("send", "Nope", "{}"), 2, "No workflow takes Nope"),
    "a type with newlines": (("send", "a\nb", "{}"), 2, "No workflow takes a b"),
    "a type of the engine's own": (("send", "mainspring.Declare", "{}"), 2, "No workflow takes"),
    "a limit of zero": (("ls", "--limit", "0"), 2, "Invalid value for '--limit'"),
    "a negative limit": (("dead-letters", "list", "--limit", "-1"), 2, "Invalid value for '--limit'"),
    "a place over 64 bits": (("ls", "--after", "9" * 30), 2, "Invalid value for '--after'"),
    "a place that is a text": (("ls", "--after", "first"), 2, "Invalid value for '--after'"),
    "a status that is none": (("ls", "--status", "ended"), 2, "Invalid value for '--status'"),
    "a time that is none": (("ls", "--since", "yesterday"), 2, "is no time"),
    "a prefix that is no UTF-8": (("ls", "--prefix", "\udcff"), 1, "Use a text without NUL"),
    "no such dead letter": (("dead-letters", "show", "9" * 40), 3, "There is no dead letter"),
    "no such task": (("tasks", "show", "Desk/bad/9999999999999999999"), 3, "There is no task"),
    "a task that is no UTF-8": (("tasks", "show", "\udcff/a/1"), 3, "There is no task"),
    "a place behind no task": (("tasks", "list", "--after", "Desk/bad/3"), 3, "There is no task"),
    "a version below one": (("reset", "bad", "--to", "0"), 2, "Invalid value for '--to'"),
    "an operation on everything": (("bulk", "cancel"), 1, "it means everything"),
    "an age that is none": (("purge", "--older-than", "-1d"), 2, "is no time span"),
    "an app that is not there": (("-a", "nope:app", "ls"), 2, "There is no module nope"),
    "an app that is a path": (("-a", "../desk:app", "ls"), 2, "is not the name of a module"),
    "an app that is a number": (("-a", "front_desk:number", "ls"), 2, "not a Mainspring"),
    "an app that is no UTF-8": (("-a", "\udcff:app", "ls"), 2, "is not the name of a module"),
}


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    (tmp_path / "front_desk.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MAINSPRING_APP", "front_desk:app")
    monkeypatch.delenv("MAINSPRING_DEBUG", raising=False)
    return lambda *typed: CliRunner().invoke(commands, typed, prog_name="mainspring")


@pytest.mark.parametrize("what", TYPED)
def test_what_is_typed_wrongly_is_told_in_one_line(typed: Callable[..., Result], what: str) -> None:
    arguments, code, says = TYPED[what]
    result = typed(*arguments)
    assert isinstance(result.exception, SystemExit)
    assert (result.exit_code, result.stdout) == (code, "")
    errors = [line for line in result.stderr.splitlines() if not line.startswith(("Usage:", "Try "))]
    assert [line[:7] for line in errors if line] == ["Error: "]
    assert says in result.stderr
    assert all(line.isprintable() for line in errors)
    listed = typed("ls", "--json")
    assert (listed.exit_code, listed.stdout) == (0, "")


@pytest.mark.parametrize("app", ["", "nope", "front_desk:", "front_desk:app:more", "1:2"])
def test_an_app_in_the_environment_that_is_none_is_told(
    typed: Callable[..., Result], app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAINSPRING_APP", app)
    result = typed("ls")
    assert result.exit_code == (0 if app == "front_desk:" else 2)
    assert "Traceback" not in result.stderr


def test_an_actor_in_the_environment_that_cannot_be_recorded_is_told(
    typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert typed("send", "Go", '{"id":"good"}').exit_code == 0
    monkeypatch.setenv("MAINSPRING_ACTOR", "a\x1b[31mb")
    result = typed("cancel", "good")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: Actor 'a\\x1b[31mb' cannot be recorded")


def test_a_second_handler_for_a_message_is_refused() -> None:
    app = desk(Mainspring("memory://"))
    with pytest.raises(WiringError):
        app.add(Desk())

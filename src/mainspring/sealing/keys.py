"""Where keys come from."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from mainspring.errors import DamagedRecordError, SettingError

KEY_BYTES: Final = 32
KEYS_KEPT: Final = 10_000
"""How many are held in memory; others are read again."""
_ENDING: Final = ".key"


class Key(Struct, frozen=True):
    """A key and its id, which is stored with what it seals.

    `renewed` says that an earlier key of the same subject was destroyed: workers may still have in memory what that one
    sealed, and it must not be written again under this one.
    """

    id: str
    secret: bytes
    renewed: bool = False


class Keys(Protocol):
    """Gives keys. Called for every body, so it answers from memory where it can."""

    def current(self, subject: str | None) -> Key:
        """Return the key under which to write about a subject; without one, that of the app."""
        ...

    def find(self, id: str) -> bytes | None:
        """Return the key of an id, or None if it was destroyed. KeyError says that there never was one here."""
        ...


class StaticKeys:
    """Keys from the configuration. The first one writes; the others read what was written under them before.

    >>> StaticKeys({"2026": bytes(32), "2025": bytes(32)}).current(None).id
    '2026'
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys:
            raise SettingError(
                "StaticKeys", dict(keys), "Give one key at least, such as {'2026': secrets.token_bytes(32)}."
            )
        for id, secret in keys.items():
            _check(id, secret)
        self._keys = dict(keys)
        self._first = next(Key(id, secret) for id, secret in keys.items())

    def current(self, subject: str | None) -> Key:
        return self._first

    def find(self, id: str) -> bytes | None:
        return self._keys[id]


class FileKeys:
    """A key for each subject, each in a file of its own, so that one can be destroyed: `destroy(subject)`.

    The directory lies outside the database, and is left out of its backups: else a restored one would bring back what
    was erased. All workers share it. Files are named by a digest of the subject, made with the directory's own salt.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> keys = FileKeys(folder.name)
    >>> key = keys.current("customer-7")
    >>> keys.find(key.id) == key.secret
    True
    >>> keys.destroy("customer-7")
    1
    >>> keys.find(key.id) is None
    True
    >>> folder.cleanup()
    """

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._folder = str(self._directory)
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._salt = self._secret(".salt")
        except OSError as error:
            fix = f"It cannot be used ({error.strerror}). Name a directory that this user may write."
            raise SettingError("The directory of keys", str(directory), fix) from error
        self._known: dict[str, bytes] = {}

    def current(self, subject: str | None) -> Key:
        name = self._name(subject or "")
        try:
            return self._newest(name)
        except FileNotFoundError:
            return self._newest(name)  # it was destroyed at this very moment: now its mark is seen

    def _newest(self, name: str) -> Key:
        generation = 1
        while self._is_gone(f"{name}-{generation}"):
            generation += 1
        id = f"{name}-{generation}"
        secret = self._known.get(id)
        if secret is None or not self._path(id).exists():
            secret = self._keep(id, self._secret(f"{id}{_ENDING}"))
        return Key(id, secret, renewed=generation > 1)

    def find(self, id: str) -> bytes | None:
        path = self._path(id)
        # Whether it is still there is asked each time: another process may have destroyed it. Its mark comes first:
        # from then on another key is written with, and what is opened now must not be taken for what that one sealed.
        if self._is_gone(id) or not path.exists():
            self._known.pop(id, None)
            return None
        secret = self._known.get(id)
        try:
            return self._keep(id, _whole(path)) if secret is None else secret
        except FileNotFoundError:
            return None

    def _keep(self, id: str, secret: bytes) -> bytes:
        if len(self._known) >= KEYS_KEPT:
            self._known.clear()  # there may be a key for every customer
        self._known[id] = secret
        return secret

    def destroy(self, subject: str) -> int:
        """Destroy the keys of a subject, and return how many there were. What they sealed cannot be read any more."""
        name = self._name(subject)
        found = sorted(self._directory.glob(f"{name}-*{_ENDING}"))
        for path in found:
            # First the mark, so that nothing is written under this key again, whenever the power goes.
            (self._directory / f"{path.stem}.gone").touch(mode=0o600)
            self._sync()
            path.write_bytes(bytes(KEY_BYTES))
            with path.open("rb") as file:
                os.fsync(file.fileno())
            path.unlink()
            self._known.pop(path.stem, None)
        self._sync()
        return len(found)

    def _name(self, subject: str) -> str:
        return hashlib.blake2b(subject.encode(), key=self._salt, digest_size=16).hexdigest()

    def _is_gone(self, id: str) -> bool:
        return os.path.exists(f"{self._folder}/{id}.gone")  # noqa: PTH110  asked for every body: a Path costs more

    def _path(self, id: str) -> Path:
        if not id.replace("-", "").isalnum():
            raise KeyError(id)
        return self._directory / f"{id}{_ENDING}"

    def _secret(self, name: str) -> bytes:
        """Return the secret of a file, made if it is not there. Of several who make it at once, one wins for all."""
        path = self._directory / name
        if not path.exists():
            draft = self._directory / f"{name}.{secrets.token_hex(8)}"
            with draft.open("xb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(secrets.token_bytes(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(draft, path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
            self._sync()
        return _whole(path)

    def _sync(self) -> None:
        handle = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _whole(path: Path) -> bytes:
    """Return the secret in a file. What is cut short, or was edited, opens nothing, and must not seal anything.

    One that was overwritten is being destroyed: it is as if its file were gone already.
    """
    secret = path.read_bytes()
    if secret == bytes(KEY_BYTES):
        raise FileNotFoundError(path)
    if len(secret) != KEY_BYTES:
        raise DamagedRecordError("keys", f"{path.name} has {len(secret)} bytes, not {KEY_BYTES}")
    return secret


def _check(id: str, secret: object) -> None:
    if not id or len(id.encode()) > 255:
        raise SettingError("The id of a key", id, "Use 1 to 255 bytes.")
    if not isinstance(secret, bytes) or len(secret) != KEY_BYTES:
        raise SettingError(
            f"The key {id!r}", "not a key", f"Use {KEY_BYTES} bytes, such as secrets.token_bytes({KEY_BYTES})."
        )

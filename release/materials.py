"""The packages that come with mainspring: what it needs, and what its extras need, as it is installed here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from msgspec import Struct, json
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "mainspring"
ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
PAGE_LOCK = ROOT / "studio" / "package-lock.json"
# It makes the studio's page, and nothing of it is in there.
PAGE_TOOLS = ("esbuild", "@esbuild/")

_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*])?==([^ ;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Material(Struct, frozen=True):
    """A package. `needs` are the names of those that it asks for here.

    >>> Material("msgspec", "0.22.0", "BSD-3-Clause", ()).purl
    'pkg:pypi/msgspec@0.22.0'
    """

    name: str
    version: str
    licence: str
    needs: tuple[str, ...] = ()
    registry: str = "pypi"

    @property
    def purl(self) -> str:
        """The package's address as others name it."""
        return f"pkg:{self.registry}/{self.name.replace('@', '%40')}@{self.version}"


def materials() -> dict[str, Material]:
    """Return mainspring itself and all that it and its extras bring, by name."""
    extras = frozenset(metadata.distribution(NAME).metadata.get_all("Provides-Extra") or ())
    wanted: dict[str, frozenset[str]] = {}
    waiting = [(NAME, extras)]
    while waiting:
        name, asked = waiting.pop()
        known = wanted.get(name)
        if known is not None and asked <= known:
            continue
        wanted[name] = asked | (known or frozenset())
        waiting += [(canonicalize_name(need.name), frozenset(need.extras)) for need in _needs(name, wanted[name])]
    return {name: _material(name, extras) for name, extras in sorted(wanted.items())}


def bundled() -> list[Material]:
    """Return what is bundled into the studio's page, and so comes inside the wheel."""
    found: list[Material] = []
    for place, entry in json.decode(PAGE_LOCK.read_bytes())["packages"].items():
        name = place.removeprefix("node_modules/")
        if name and not entry.get("dev") and not name.startswith(PAGE_TOOLS):
            found.append(Material(name, entry["version"], entry.get("license", ""), registry="npm"))
    return found


def hashes() -> dict[tuple[str, str], list[str]]:
    """Return the digests of the files that the lock file allows, by name and version."""
    found: dict[tuple[str, str], list[str]] = {}
    digests: list[str] = []
    for line in LOCK.read_text().splitlines():
        if locked := _LOCKED.match(line):
            digests = found.setdefault((canonicalize_name(locked[1]), locked[2]), [])
        digests += _HASH.findall(line)
    return found


def licence_of(data: metadata.PackageMetadata) -> str:
    """Return what a package says of its licence, in the most exact of three places; nothing if it does not.

    >>> licence_of(metadata.metadata("msgspec"))
    'BSD-3-Clause'
    """
    fields = data.json
    classifiers = [each for each in fields.get("classifier", ()) if each.startswith("License :: ")]
    stated = str(fields.get("license", "")).strip().partition("\n")[0]
    return str(
        fields.get("license_expression", "")
        or " AND ".join(each.rsplit(" :: ", 1)[1] for each in classifiers)
        or stated
    )


def _material(name: str, extras: frozenset[str]) -> Material:
    found = metadata.distribution(name)
    needs = tuple(sorted({canonicalize_name(need.name) for need in _needs(name, extras)}))
    return Material(name, found.version, licence_of(found.metadata), needs)


def _needs(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    for text in metadata.distribution(name).requires or ():
        need = Requirement(text)
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield need

"""The bill of materials of a release, as CycloneDX 1.6: what is in it, what needs what, and which files were meant."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import json

from release.licences import licence
from release.materials import NAME, Material, bundled, hashes, materials


def sbom() -> dict[str, Any]:
    """Return the bill. It says nothing of when or where it was made: the same release has the same bill."""
    found, digests = materials(), hashes()
    own = found.pop(NAME)
    page = bundled()
    needs = {each.purl: [found[need].purl for need in each.needs] for each in (own, *found.values())}
    needs[own.purl] += [each.purl for each in page]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component(own)},
        "components": [
            *(_component(each, digests.get((each.name, each.version), ())) for each in found.values()),
            *(_component(each) for each in page),
        ],
        "dependencies": [{"ref": ref, "dependsOn": sorted(refs)} for ref, refs in needs.items()],
    }


def _component(material: Material, digests: Sequence[str] = ()) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": material.purl,
        "name": material.name,
        "version": material.version,
        "purl": material.purl,
    }
    if known := licence(material):
        component["licenses"] = [{"license": {"name": known}}]
    if digests:
        # One for each file of the release that may be installed: for every system and every Python.
        component["properties"] = [{"name": "locked:sha256", "value": digest} for digest in digests]
    return component


def main() -> None:
    """Write the bill to the file that is named, or to the standard output."""
    text = json.format(json.encode(sbom()), indent=2) + b"\n"
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_bytes(text)
    else:
        sys.stdout.buffer.write(text)


if __name__ == "__main__":
    main()

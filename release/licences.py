"""The licences of all that comes with mainspring. One that nobody agreed to fails the check."""

from __future__ import annotations

import sys

from release.materials import Material, bundled, materials

AGREED = {
    "Apache 2.0",
    "Apache Software License",
    "Apache-2.0",
    "Apache-2.0 AND BSD-2-Clause",
    "Apache-2.0 OR BSD-2-Clause",
    "Apache-2.0 OR BSD-3-Clause",
    "BSD License",
    "BSD License AND Apache Software License",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "MIT",
    "MIT License",
    "MIT-0",
    # Changes to its own files are to be shared; whoever uses it is bound to nothing.
    "MPL-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)",
    "PSF-2.0",
    # Any licence that the Open Source Initiative approves of, as one likes.
    "any-OSI",
}
# Packages that say nothing of it in their metadata, with what stands in their sources.
LOOKED_UP = {"resvg-py": "MIT"}


def licence(material: Material) -> str:
    """Return a package's licence, looked up where it says none."""
    return material.licence or LOOKED_UP.get(material.name, "")


def not_agreed() -> list[str]:
    """Return what comes under a licence that nobody agreed to, or under none."""
    found = (*materials().values(), *bundled())
    return [f"{each.name} {each.version}: {licence(each) or 'none'}" for each in found if licence(each) not in AGREED]


def main() -> None:
    """Print a table, and fail if there is something that nobody agreed to."""
    for each in (*materials().values(), *bundled()):
        sys.stdout.write(f"{each.name:<24} {each.version:<12} {licence(each)}\n")
    if strange := not_agreed():
        sys.exit("\n".join(["", "These need a decision:", *strange]))


if __name__ == "__main__":
    main()

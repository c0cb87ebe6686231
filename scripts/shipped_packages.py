#!/usr/bin/env python
"""The packages that an installation of sparklog brings, as the audit wants them.

    shipped_packages.py licences        a table; exit status 1 if somebody must look at a licence
    shipped_packages.py requirements    NAME==VERSION, a line each
    shipped_packages.py sbom FILE       leave these alone in a CycloneDX file (JSON) of the environment

What tests and lint need is left out: who installs sparklog does not get it. Versions are those of the
environment whose Python runs this, which constraints.txt pins.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement

ROOT_PACKAGE: Final = "sparklog[hdfs,s3]"
ACCEPTED: Final = re.compile(
    r"apache|\bbsd\b|bsd-\d|0bsd|\bmit\b|mit-0|\bisc\b|python software|psf|mpl[- ]2|hpnd|zlib|unlicense",
    re.IGNORECASE,
)
REFUSED: Final = re.compile(r"\b[al]?gpl", re.IGNORECASE)
"""Even beside an accepted one: somebody must look."""

LOOKED_AT: Final[Mapping[str, tuple[str, str]]] = {
    "crc32c": (
        "GNU Lesser General Public License v2 or later (LGPLv2+)",
        "imported unchanged, as a package of its own, which its user can replace",
    ),
    "hdfs-native": ("", "Apache-2.0 by the LICENSE of its repository; its wheel does not say so"),
}
"""What its package says, and why that will do. Another text is looked at anew."""

_CLASSIFIER: Final = "License :: "
_TEXT_LENGTH_MAX: Final = 80
"""A longer text is a whole licence, whose first words say its name."""


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(root: str) -> dict[str, str]:
    """Versions by normalized name of what ``root`` needs, itself left out; PackageNotFoundError if one is
    not installed.
    """
    found: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(root)]
    while waiting:
        wanted = waiting.pop()
        key = (normalized(wanted.name), frozenset(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        package = distribution(wanted.name)
        found[key[0]] = package.version
        waiting += [one for one in map(Requirement, package.requires or ()) if _is_needed(one, wanted.extras)]
    found.pop(normalized(Requirement(root).name))
    return dict(sorted(found.items()))


def _is_needed(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def licence_of(metadata: Mapping[str, str], classifiers: Iterable[str]) -> str:
    """In the package's own words; empty if it has none."""
    expression = metadata.get("License-Expression") or ""
    if expression:
        return expression
    named = [one.rpartition(" :: ")[2] for one in classifiers if one.startswith(_CLASSIFIER)]
    if named:
        return ", ".join(named)
    text = " ".join((metadata.get("License") or "").split())
    return text[:_TEXT_LENGTH_MAX]


def is_accepted(licence: str) -> bool:
    return ACCEPTED.search(licence) is not None and REFUSED.search(licence) is None


def restricted(sbom: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The SBOM with the components of these names alone, and the edges between them and the root."""
    wanted = set(names)
    kept = [one for one in sbom["components"] if normalized(one["name"]) in wanted]
    root = sbom.get("metadata", {}).get("component", {}).get("bom-ref")
    refs = {one["bom-ref"] for one in kept} | {root}
    edges = [
        {**one, "dependsOn": [ref for ref in one.get("dependsOn", ()) if ref in refs]}
        for one in sbom.get("dependencies", ())
        if one["ref"] in refs
    ]
    return {**sbom, "components": kept, "dependencies": edges}


def _print_licences(packages: Mapping[str, str]) -> int:
    unclear = []
    for name, version in packages.items():
        metadata = distribution(name).metadata
        licence = licence_of(
            {key: metadata[key] for key in ("License-Expression", "License") if key in metadata},
            metadata.get_all("Classifier") or (),
        )
        seen, why = LOOKED_AT.get(name, (None, ""))
        note = f" ({why})" if licence == seen else ""
        print(f"{name:<24} {version:<16} {licence or 'unknown'}{note}")
        if not note and not is_accepted(licence):
            unclear.append(f"{name} {version}: {licence or 'unknown'}")
    for one in unclear:
        print(f"sparklog: look at the licence of {one}", file=sys.stderr)
    return 1 if unclear else 0


def main(arguments: list[str]) -> int:
    try:
        packages = closure(ROOT_PACKAGE)
    except PackageNotFoundError as error:
        print(f"sparklog: {error} is not installed; make setup", file=sys.stderr)
        return 1
    match arguments:
        case ["licences"]:
            return _print_licences(packages)
        case ["requirements"]:
            print("\n".join(f"{name}=={version}" for name, version in packages.items()))
        case ["sbom", path]:
            file = Path(path)
            sbom = restricted(json.loads(file.read_text("utf-8")), packages)
            file.write_text(json.dumps(sbom, indent=2) + "\n", "utf-8")
            print(f"{len(sbom['components'])} packages")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

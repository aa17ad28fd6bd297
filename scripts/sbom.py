"""Writes what an image holds as a CycloneDX 1.6 document, which scanners read.

    python scripts/sbom.py PIP-REPORT [DPKG-STATUS] >sbom.cdx.json

PIP-REPORT is what `pip install --report` wrote, DPKG-STATUS the list of Debian's
packages (/var/lib/dpkg/status). The same inputs give the same bytes: neither time nor
serial number is in it.

Source: CycloneDX 1.6 (ECMA-424); the package-url specification, types pypi and deb;
PEP 610.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

PROJECT = "moorings"


def main() -> None:
    report, *status = map(Path, sys.argv[1:])
    text = status[0].read_text() if status else ""
    print(json.dumps(describe(json.loads(report.read_text()), text), indent=1))


def describe(report: dict[str, Any], status: str) -> dict[str, Any]:
    """Make the document: the project, and all that is installed beside it."""
    packages = list(list_python(report))
    (project,) = [one for one in packages if one["name"] == PROJECT]
    others = [one for one in packages if one is not project] + list(list_debian(status))
    del project["hashes"]  # of a wheel that was built for this image alone
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**project, "type": "application"}},
        "components": sorted(others, key=lambda one: str(one["purl"])),
    }


def list_python(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for entry in report["install"]:
        metadata = entry["metadata"]
        name = metadata["name"].lower().replace("_", "-")
        purl = f"pkg:pypi/{name}@{metadata['version']}"
        component = make_component(name, metadata["version"], purl)
        digest = read_sha256(entry["download_info"]["archive_info"])
        component["hashes"] = [{"alg": "SHA-256", "content": digest}]
        if expression := metadata.get("license_expression"):
            component["licenses"] = [{"expression": expression}]
        yield component


def read_sha256(archive: dict[str, Any]) -> str:
    """Read the hash of a wheel as PEP 610 has it; pip before 23.1 knew one field."""
    if "hashes" in archive:
        return str(archive["hashes"]["sha256"])
    algorithm, _, digest = archive["hash"].partition("=")
    if algorithm != "sha256":
        raise SystemExit(f"error: a wheel has no sha256, but {algorithm}")
    return str(digest)


def list_debian(status: str) -> Iterator[dict[str, Any]]:
    for paragraph in filter(str.strip, status.split("\n\n")):
        fields = HeaderParser().parsestr(paragraph)
        name, version, architecture = (
            str(fields[key]) for key in ("Package", "Version", "Architecture")
        )
        place = f"{quote(name)}@{quote(version, safe='')}?arch={architecture}"
        yield make_component(name, version, f"pkg:deb/debian/{place}")


def make_component(name: str, version: str, purl: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }


if __name__ == "__main__":
    main()

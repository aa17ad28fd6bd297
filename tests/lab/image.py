"""What the Containerfile puts into the image, put together without a container runtime.

The project as a wheel of just the sources that the build is given, beside the pinned
packages that the services' extras name, as they are installed here: a package that a
service imports and no extra names is missing, as it would be in the image.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "Containerfile"
PROJECT = "moorings"
SERVICES = ("authcallout", "nodeagent", "publisher", "solver")
SELECTOR = """
from solver.cel.sandbox import Sandbox
from contracts.device import Device
sandbox = Sandbox()
print(sandbox.evaluate("1 + 1 == 2", [("driver", Device(name="gpu-0"))]))
sandbox.close()
"""
BUILD = "import sys; from setuptools import build_meta as b; b.build_wheel(sys.argv[1])"


def extras() -> tuple[str, ...]:
    """Read which extras the Containerfile installs."""
    found = re.search(rf"{PROJECT}\[([a-z,]+)\]", CONTAINERFILE.read_text())
    assert found
    return tuple(found[1].split(","))


def packages(*chosen_extras: str) -> dict[str, importlib.metadata.Distribution]:
    """Find the packages of the image by name, the project itself left out.

    With extras, those that the project needs with these instead.
    """
    found: dict[str, importlib.metadata.Distribution] = {}
    wanted = _required_by_project(chosen_extras or extras())
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        if name == PROJECT:
            wanted += _required_by_project(tuple(requirement.extras))
        if name in found or name == PROJECT:
            continue
        found[name] = importlib.metadata.distribution(name)
        chosen = ["", *requirement.extras]
        for text in found[name].requires or ():
            needed = Requirement(text)
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": e}) for e in chosen):
                wanted.append(needed)
    return found


def _required_by_project(chosen: tuple[str, ...]) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"]]
    for extra in chosen:
        texts += project["optional-dependencies"][extra]
    return [Requirement(text) for text in texts]


def assemble(folder: Path) -> Path:
    """Put the image's packages together; gives where Python finds them."""
    content = folder / "content"
    with zipfile.ZipFile(build_wheel(folder)) as wheel:
        wheel.extractall(content)
    link(packages(), content)
    return content


def link(
    distributions: Mapping[str, importlib.metadata.Distribution], content: Path
) -> None:
    """Put the files of packages into a folder, as they are installed here.

    What was compiled here stays valid there: files keep their times.
    """
    for distribution in distributions.values():
        for file in distribution.files or ():
            source, target = Path(str(file.locate())), content / file
            if ".." in file.parts or not source.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(source, target)
            except OSError:
                shutil.copy2(source, target)


def run(content: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """Run Python with nothing but the image's packages; gives exit code and words."""
    ended = subprocess.run(
        [sys.executable, "-P", "-S", *arguments],
        env={"PYTHONPATH": str(content), "PATH": os.defpath, **variables},
        cwd=content.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


def build_wheel(folder: Path, version: str = "") -> Path:
    """Build the project's wheel from what .containerignore lets through.

    It gets another version where one is given.
    """
    sources, wheels = folder / "sources", folder / "wheels"
    sources.mkdir(parents=True)
    for line in (ROOT / ".containerignore").read_text().splitlines():
        if not line.startswith("!"):
            continue
        path = ROOT / line[1:]
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, sources / path.name, ignore=ignored)
        else:
            shutil.copy(path, sources)
    wheels.mkdir()
    if version:
        project = sources / "pyproject.toml"
        stated = re.compile(r'^version = ".*"$', re.MULTILINE)
        project.write_text(stated.sub(f'version = "{version}"', project.read_text()))
    subprocess.run(
        [sys.executable, "-c", BUILD, str(wheels)],
        cwd=sources,
        check=True,
        capture_output=True,
    )
    (wheel,) = wheels.glob("*.whl")
    return wheel

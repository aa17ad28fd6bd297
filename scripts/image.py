"""Makes OCI image archives without a container runtime, for containerd and registries.

    python scripts/image.py moorings OUT.tar          the image of the Containerfile
    python scripts/image.py program NAME OUT.tar FILE AS [LINK ...] [-- ENTRYPOINT ...]

`moorings` holds what the Containerfile's image holds: a Debian root with Python, from
packages that apt-get downloads and checks, and in /opt/moorings the pinned packages of
constraints.txt, checked by hash, and this project. It needs Debian 12 (apt-get,
dpkg-deb) and a Python 3.11 with pip; it needs no root and runs nothing of what it
unpacks. The Debian root and the packages are kept in the user's cache folder. `program`
makes an image of one static program, such as nats-server or busybox.

Same inputs, same bytes: files are sorted, belong to root and have no time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from oci import digest, pack, write_archive
from sbom import describe

SCRIPTS = Path(__file__).parent
ROOT = SCRIPTS.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
IMAGE = "docker.io/library/moorings:0.1.0"
EXTRAS = "solver,publisher,nodeagent,authcallout,nvml,tracing"
PYTHON = "3.11"
USER = "65532:65532"
HOME = "opt/moorings"
SITE = f"{HOME}/lib/python{PYTHON}/site-packages"
DEBIAN = (
    f"python{PYTHON}-minimal libpython{PYTHON}-minimal libpython{PYTHON}-stdlib"
    " base-files netbase media-types ca-certificates tzdata"
    " libc6 libgcc-s1 libstdc++6 libcrypt1 libssl3 zlib1g libexpat1 libbz2-1.0 liblzma5"
    " libffi8 libuuid1 libsqlite3-0 libnsl2 libtirpc3 libgssapi-krb5-2 libkrb5-3"
    " libk5crypto3 libkrb5support0 libcom-err2 libkeyutils1 libdb5.3"
    " busybox-static bash libtinfo6 openssl"
).split()
"""Python, what its modules and the wheels load, and what the Job new-secrets runs."""
SHELL = (
    *("sh", "awk", "basename", "cat", "cut", "env", "grep", "head", "ls", "printf"),
    *("readlink", "sed", "sort", "tr", "wc"),
    *("dirname", "mkdir", "mktemp", "mv", "od", "rm", "tail"),
)
"""What scripts of sources and k8s/secrets.sh call by name: all of them are busybox."""
UNWANTED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    moorings = kinds.add_parser("moorings", help="the image of all services")
    moorings.add_argument("out", type=Path)
    moorings.add_argument("--name", default=IMAGE)
    program = kinds.add_parser("program", help="an image of one static program")
    program.add_argument("name")
    program.add_argument("out", type=Path)
    program.add_argument("file", type=Path)
    program.add_argument("path", help="where the program is in the image")
    program.add_argument("links", nargs="*", help="other names of it")
    program.add_argument("--entrypoint", nargs="+", default=[])
    asked = parser.parse_args()
    if asked.kind == "moorings":
        make_moorings(asked.out, asked.name)
    else:
        make_program(asked)
    print(f"{asked.out}: {asked.out.stat().st_size / 1e6:.0f} MB")


def make_moorings(out: Path, name: str) -> None:
    if sys.version_info[:2] != tuple(map(int, PYTHON.split("."))):
        raise SystemExit(f"error: the image has Python {PYTHON}, as this must be")
    constraints = (ROOT / "constraints.txt").read_bytes()
    debian = cached("debian", " ".join(DEBIAN).encode(), make_debian)
    packages = cached("packages", constraints + EXTRAS.encode(), make_packages)
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "layer.tar.gz"
        report = json.loads(read_file(packages, f"{HOME}/packages.json"))
        status = read_file(debian, "var/lib/dpkg/status").decode()
        make_project(project, json.dumps(describe(report, status), indent=1))
        config = {
            "User": USER,
            "Entrypoint": ["moorings"],
            "WorkingDir": "/",
            "Env": [
                f"PATH=/{HOME}/bin:/usr/bin",
                "PYTHONDONTWRITEBYTECODE=1",
                "PYTHONUNBUFFERED=1",
                "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
            ],
            "Labels": labels(),
        }
        write_archive(out, name, config, [debian, packages, project], created())


def labels() -> dict[str, str]:
    given = "org.opencontainers.image"
    return {
        f"{given}.title": "moorings",
        f"{given}.licenses": "Apache-2.0",
        f"{given}.version": IMAGE.rpartition(":")[2],
        f"{given}.revision": git("rev-parse", "HEAD"),
    }


def make_program(asked: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        target = root / asked.path.lstrip("/")
        target.parent.mkdir(parents=True)
        shutil.copy(asked.file, target)
        target.chmod(0o755)
        for link in asked.links:
            (root / link.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (root / link.lstrip("/")).symlink_to(asked.path)
        (root / "tmp").mkdir()
        layer = Path(scratch) / "layer.tar.gz"
        pack(root, layer)
        config = {
            "Entrypoint": asked.entrypoint or [asked.path],
            "Env": ["PATH=/bin:/usr/bin"],
        }
        write_archive(asked.out, asked.name, config, [layer], created())


def make_debian(layer: Path) -> None:
    """Unpack Debian's packages, and do what their scripts would do; none is run."""
    with tempfile.TemporaryDirectory() as scratch:
        root, debs = Path(scratch) / "root", Path(scratch) / "debs"
        debs.mkdir()
        run(
            "apt-get",
            "-qq",
            "-o",
            "APT::Sandbox::User=root",
            "download",
            *DEBIAN,
            cwd=debs,
        )
        for name in ("bin", "sbin", "lib", "lib64"):  # as Debian has them since 12
            (root / "usr" / name).mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(f"usr/{name}")
        for deb in sorted(debs.iterdir()):
            with subprocess.Popen(
                ["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE
            ) as files:
                run("tar", "-x", "--keep-directory-symlink", "--no-same-owner",
                    "-C", str(root), stdin=files.stdout)  # fmt: skip
        for folder in UNWANTED:
            shutil.rmtree(root / folder, ignore_errors=True)
        for command in SHELL:
            (root / "usr/bin" / command).symlink_to("busybox")
        finish_debian(root, debs)
        compile_all(root / "usr/lib" / f"python{PYTHON}", f"/usr/lib/python{PYTHON}")
        pack(root, layer)


def finish_debian(root: Path, debs: Path) -> None:
    """Users, certificates, and which packages there are, as dpkg would note them."""
    etc = root / "etc"
    (etc / "passwd").write_text(
        "root:x:0:0:root:/root:/sbin/nologin\n"
        "moorings:x:65532:65532:moorings:/:/sbin/nologin\n"
    )
    (etc / "group").write_text("root:x:0:\nmoorings:x:65532:\n")
    (etc / "nsswitch.conf").write_text("hosts: files dns\n")
    authorities = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    bundle = etc / "ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_bytes(b"".join(path.read_bytes() for path in authorities))
    status = [
        run("dpkg-deb", "--field", str(deb)).rstrip()
        + "\nStatus: install ok installed\n"
        for deb in sorted(debs.iterdir())
    ]
    (root / "var/lib/dpkg").mkdir(parents=True, exist_ok=True)
    (root / "var/lib/dpkg/status").write_text("\n".join(status))


def make_packages(layer: Path) -> None:
    """Install what the services' extras name, out of wheels checked by hash."""
    with tempfile.TemporaryDirectory() as scratch:
        root, wheels = Path(scratch) / "root", Path(scratch) / "wheels"
        pins = ("--require-hashes", "--only-binary", ":all:")
        constraints = str(ROOT / "constraints.txt")
        pip("download", *pins, "--dest", str(wheels), "-r", constraints)
        home = root / HOME
        found = ("--no-index", "--find-links", str(wheels))
        report = ("--report", str(home / "packages.json"))
        home.mkdir(parents=True)
        project = build_wheel(Path(scratch))
        pip("install", *found, *report, "--target", str(root / SITE), "--no-compile",
            f"{project}[{EXTRAS}]")  # fmt: skip
        remove_project(root)
        for tests in sorted((root / SITE).rglob("tests")):
            shutil.rmtree(tests, ignore_errors=True)  # 60 MB of pandas and numpy
        make_environment(home)
        compile_all(root / SITE, f"/{SITE}")
        pack(root, layer)


def remove_project(root: Path) -> None:
    """It is in a layer of its own: it changes with each commit, the packages do not."""
    for path in (root / SITE).glob("moorings-*.dist-info"):
        for line in (path / "RECORD").read_text().splitlines():
            (root / SITE / line.split(",")[0]).unlink(missing_ok=True)
    shutil.rmtree(root / SITE / "bin", ignore_errors=True)
    for path in sorted((root / SITE).rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def make_environment(home: Path) -> None:
    """Make a virtual environment around the packages."""
    (home / "bin").mkdir()
    (home / "bin/python").symlink_to(f"/usr/bin/python{PYTHON}")
    said = "home = /usr/bin\ninclude-system-site-packages = false\n"
    (home / "pyvenv.cfg").write_text(said)


def read_file(layer: Path, name: str) -> bytes:
    with tarfile.open(layer) as archive, archive.extractfile(name) as file:
        return file.read()


def make_project(layer: Path, bill: str) -> None:
    """Install this project alone, with the bill of all materials."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        wheel = build_wheel(Path(scratch))
        pip("install", "--no-index", "--no-deps", "--no-compile", "--target",
            str(root / SITE), str(wheel))  # fmt: skip
        shutil.rmtree(root / SITE / "bin", ignore_errors=True)
        command = root / HOME / "bin/moorings"
        command.parent.mkdir(parents=True)
        command.write_text(
            f"#!/{HOME}/bin/python\nfrom moorings.cli.entry import main\n\nmain()\n"
        )
        command.chmod(0o755)
        (root / HOME / "sbom.cdx.json").write_text(bill + "\n")
        compile_all(root / SITE, f"/{SITE}")
        pack(root, layer)


def build_wheel(folder: Path) -> Path:
    """Build the project from what .containerignore lets through."""
    sources = folder / "sources"
    sources.mkdir()
    for line in (ROOT / ".containerignore").read_text().splitlines():
        if not line.startswith("!"):
            continue
        path = ROOT / line[1:]
        if path.is_dir():
            shutil.copytree(
                path, sources / path.name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(path, sources)
    pip("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir",
        str(folder / "wheel"), str(sources))  # fmt: skip
    (wheel,) = (folder / "wheel").glob("*.whl")
    return wheel


def compile_all(folder: Path, told: str) -> None:
    """Compile, so that no service does it at each start; the same each time."""
    run(sys.executable, "-m", "compileall", "-q", "-d", told, "--invalidation-mode",
        "unchecked-hash", str(folder))  # fmt: skip


def cached(kind: str, inputs: bytes, make: Callable[[Path], None]) -> Path:
    """Give a layer, made once for each state of its inputs and of this file."""
    sources = b"".join((SCRIPTS / name).read_bytes() for name in ("image.py", "oci.py"))
    key = digest(inputs + sources)[7:23]
    layer = CACHE / "moorings" / "image" / f"{kind}-{key}.tar.gz"
    if not layer.exists():
        layer.parent.mkdir(parents=True, exist_ok=True)
        begun = layer.with_suffix(f".{os.getpid()}")
        make(begun)
        begun.replace(layer)
    return layer


def created() -> str:
    """The time of the last commit."""
    at = datetime.fromtimestamp(int(git("log", "-1", "--format=%ct")), UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def git(*arguments: str) -> str:
    return run("git", *arguments, cwd=ROOT).strip()


def pip(*arguments: str) -> None:
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments[:1],
        "--quiet", *arguments[1:])  # fmt: skip


def run(*command: str, cwd: Path | None = None, stdin: IO[bytes] | None = None) -> str:
    """Run a program; it ends us with its own words if it fails."""
    ended = subprocess.run(
        command, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, text=True, check=False
    )
    if ended.returncode != 0:
        raise SystemExit(f"error: {' '.join(command[:4])} ... failed (see above)")
    return ended.stdout


if __name__ == "__main__":
    main()

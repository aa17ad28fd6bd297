"""Where the programs of the control plane are; builds them where Go is there.

`scripts/controlplane.sh` and `scripts/controlplane-next.sh` decide what is built and
where it is kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.lab.controlplane.options import NEWEST, NEXT, OLDER, SCHEDULER

REQUIRED = "MOORINGS_REQUIRE_GO"
NO_CONTROL_PLANE = (
    "no Kubernetes control plane: install Go 1.26+ (https://go.dev/dl) or let"
    " KUBEBUILDER_ASSETS name a folder with etcd, kube-apiserver,"
    " kube-controller-manager, kube-scheduler and kubectl; these tests are skipped"
)
NOT_BUILT = (
    "programs of Kubernetes {0} are not built: scripts/controlplane-older.sh {0}, some"
    " 5 minutes, once, as `make soak` does"
)
_SCRIPTS = Path(__file__).parents[3] / "scripts"


def built(release: str = NEWEST) -> Path | None:
    """Give the folder of the programs; None where there is neither Go nor a folder.

    Those of the next release and of older ones are built with Go alone.

    Raises:
        subprocess.CalledProcessError: they cannot be built, or the folder lacks one.
    """
    if shutil.which("go") is None and "KUBEBUILDER_ASSETS" not in os.environ:
        return None
    words = {NEXT: ["controlplane-next.sh"]} | {
        older: ["controlplane-older.sh", older] for older in OLDER
    }
    script, *arguments = words.get(release, ["controlplane.sh"])
    told = subprocess.run(
        ["bash", str(_SCRIPTS / script), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Path(told.stdout.splitlines()[-1])


def already_built(release: str) -> bool:
    """Tell whether the programs of an older release were built here before."""
    modules, script = Path(__file__).parent, _SCRIPTS / "controlplane-older.sh"
    name = f"go{release.replace('.', '')}"
    files = (modules / f"{name}.mod", modules / f"{name}.sum", script)
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "moorings" / f"controlplane-{release}" / key
    return (folder / SCHEDULER).exists()  # it is built last

"""Where the programs of a node are; builds them where Go is there.

`scripts/node.sh` decides what is built and where it is kept. runc, busybox and the
plugins of the network are the distribution's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.lab.node.settings import CNI_PLUGINS

NO_KUBELET = (
    "no kubelet: install Go 1.26+ (https://go.dev/dl) or let NODE_ASSETS name a folder"
    " with kubelet; these tests are skipped"
)
NO_RUNTIME = (
    "no node that runs containers: it needs root, Go 1.26+ (or NODE_ASSETS) and"
    " `apt-get install runc busybox-static containernetworking-plugins`; these tests"
    " are skipped"
)
FROM_DISTRIBUTION = ("runc", "busybox", "unshare", "ip")
_SCRIPT = Path(__file__).parents[3] / "scripts" / "node.sh"


def kubelet_built() -> Path | None:
    """Give the folder with kubelet; None where there is neither Go nor a folder.

    Raises:
        subprocess.CalledProcessError: it cannot be built, or the folder lacks it.
    """
    return _built("kubelet")


def runtime_built() -> Path | None:
    """Give the folder with kubelet and containerd; None where they could not run.

    Raises:
        subprocess.CalledProcessError: they cannot be built, or the folder lacks one.
    """
    found = all(shutil.which(name) for name in FROM_DISTRIBUTION)
    found = found and Path(CNI_PLUGINS, "bridge").exists()
    return _built() if found and os.geteuid() == 0 else None


def _built(*arguments: str) -> Path | None:
    if shutil.which("go") is None and "NODE_ASSETS" not in os.environ:
        return None
    told = subprocess.run(
        ["bash", str(_SCRIPT), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Path(told.stdout.splitlines()[-1])

"""Where Kueue's manager and its manifests are; builds them where Go is there.

`scripts/kueue.sh` decides what is built and where it is kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

NO_KUEUE = (
    "no Kueue: install Go 1.26+ (https://go.dev/dl) or let KUEUE_ASSETS name a folder"
    " with kueue and its config; these tests are skipped"
)
_SCRIPT = Path(__file__).parents[3] / "scripts" / "kueue.sh"


def built() -> Path | None:
    """Give the folder of the manager; None where there is neither Go nor a folder.

    Raises:
        subprocess.CalledProcessError: it cannot be built, or the folder lacks it.
    """
    if shutil.which("go") is None and "KUEUE_ASSETS" not in os.environ:
        return None
    told = subprocess.run(
        ["bash", str(_SCRIPT)], check=True, stdout=subprocess.PIPE, text=True
    )
    return Path(told.stdout.splitlines()[-1])

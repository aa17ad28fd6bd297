"""Where Kueue's manager and its manifests are.

`scripts/kueue.sh` builds them and decides where they are kept. That takes longer than
all other programs together may, so tests only use what was built, but in `make soak`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.lab.soak import SOAK

NO_KUEUE = (
    "no Kueue: build it once by scripts/kueue.sh (Go 1.26+, about 5 minutes) or let"
    " KUEUE_ASSETS name a folder with kueue and its config; these tests are skipped"
)
_SCRIPT = Path(__file__).parents[3] / "scripts" / "kueue.sh"


def built() -> Path | None:
    """Give the folder of the manager; None where it was not built.

    Raises:
        subprocess.CalledProcessError: it cannot be built, or the folder lacks it.
    """
    if shutil.which("go") is None and "KUEUE_ASSETS" not in os.environ:
        return None
    how = [] if SOAK else ["--cached"]
    told = subprocess.run(
        ["bash", str(_SCRIPT), *how], check=True, stdout=subprocess.PIPE, text=True
    )
    lines = told.stdout.splitlines()
    return Path(lines[-1]) if lines else None

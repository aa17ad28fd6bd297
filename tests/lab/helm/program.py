"""Where Helm is: `scripts/helm.sh` builds it, and tests only use what was built.

In `make soak` it is built.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.lab.soak import SOAK

NO_HELM = (
    "no Helm: build it once by scripts/helm.sh (Go 1.26+, about 4 minutes) or let HELM"
    " name it; these tests are skipped"
)
_SCRIPT = Path(__file__).parents[3] / "scripts" / "helm.sh"


def built() -> str | None:
    """Return the path of the program, or None where it was not built.

    Raises:
        subprocess.CalledProcessError: it cannot be built.
    """
    how = [] if SOAK else ["--cached"]
    command = ["bash", str(_SCRIPT), *how]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return told.stdout.strip() or None

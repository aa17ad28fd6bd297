"""Commands write logs of errors alone, beside the answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
{first}
from moorings.cli.logs import quiet_logs
quiet_logs()
if "structlog" in sys.modules:
    import structlog
    structlog.get_logger().info("all is well")
    structlog.get_logger().error("something is wrong")
"""


@pytest.mark.parametrize("imports", [True, False])
def test_what_is_not_imported_is_not_set_up(imports: bool) -> None:
    program = PROGRAM.format(first="import structlog" if imports else "")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert "all is well" not in done.stderr
    assert ("something is wrong" in done.stderr) == imports

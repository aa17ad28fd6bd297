"""Fixtures for tests of the solver."""

from __future__ import annotations

import pytest

from solver.engines import choose


@pytest.fixture(params=[choose.WHOLE, 0], ids=["direct", "rigid"])
def batch_sizes(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decide as small batches are decided, and as large ones are."""
    monkeypatch.setattr(choose, "WHOLE", request.param)

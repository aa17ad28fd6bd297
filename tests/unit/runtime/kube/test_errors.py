"""Errors of the API server as whoever must act reads them."""

from __future__ import annotations

from runtime.kube.errors import PermissionDeniedError


def test_a_missing_permission_is_written_as_a_rule() -> None:
    """So that it can be copied into a role; the core group is written out."""
    denied = PermissionDeniedError(
        "patch Pod a/b",
        "no",
        verb="patch",
        resource="pods",
        scope='in the namespace "a"',
    )
    assert denied.rule == 'verb patch on pods of group "" in the namespace "a"'
    assert denied.rule in str(denied)


def test_refused_credentials_are_no_missing_rule() -> None:
    """Where it is not known who we are, no role would help."""
    refused = PermissionDeniedError("list Pod", "Unauthorized")
    assert refused.rule == ""
    assert "credentials" in str(refused)

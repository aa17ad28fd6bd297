"""What every way to an API server shares: trust and proxies."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from runtime.kube.identity import environment_proxy, trusting


def test_authorities_of_kubernetes_own_tools_are_trusted() -> None:
    """They lack what a strict check asks for; the rest is checked."""
    context = trusting(None)
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_what_holds_no_certificate_is_an_error(tmp_path: Path) -> None:
    """Instead of a context that trusts nobody."""
    file = tmp_path / "ca.crt"
    file.write_text("nothing")
    with pytest.raises(OSError, match=r"."):
        trusting(str(file))


def test_the_proxy_of_the_environment_has_exceptions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the host's name."""
    monkeypatch.setenv("https_proxy", "http://env:1")
    monkeypatch.setenv("no_proxy", "inside.example.com")
    assert environment_proxy("https://outside.example.com") == "http://env:1"
    assert environment_proxy("https://inside.example.com:6443") is None

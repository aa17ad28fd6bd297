"""The service account of a pod, as kubelet mounts it."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from runtime.kube.errors import ClusterError
from runtime.kube.service_account import ServiceAccount


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return what a pod with a service account has."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    authority = ssl.get_default_verify_paths().openssl_cafile
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_bytes(Path(authority).read_bytes())
    return tmp_path


async def test_the_server_is_that_of_the_environment(folder: Path) -> None:
    """An address of IPv6 stands in brackets."""
    account = ServiceAccount.read(folder)
    assert account.server == "https://10.0.0.1:443"
    assert await account.token() == "Bearer one"
    assert account.tls().verify_mode is ssl.CERT_REQUIRED


def test_an_address_of_ipv6_stands_in_brackets(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in every URL."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert ServiceAccount.read(folder).server == "https://[fd00::1]:443"


async def test_a_refused_token_is_read_anew(folder: Path) -> None:
    """And not before it was refused, or a minute has passed."""
    account = ServiceAccount.read(folder)
    (folder / "token").write_text("two")
    assert await account.token() == "Bearer one"
    account.note_refusal()
    assert await account.token() == "Bearer two"


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
async def test_a_token_that_cannot_be_read_is_named(
    folder: Path, content: bytes | None
) -> None:
    """At the start, and while we run."""
    account = ServiceAccount.read(folder)
    if content is None:
        (folder / "token").unlink()
    else:
        (folder / "token").write_bytes(content)
    account.note_refusal()
    with pytest.raises(ClusterError, match="token"):
        await account.token()
    with pytest.raises(ClusterError, match="token"):
        ServiceAccount.read(folder)


def test_an_authority_that_cannot_be_read_is_named(folder: Path) -> None:
    """Also one that is no certificate."""
    (folder / "ca.crt").write_text("nothing")
    with pytest.raises(ClusterError, match=r"ca\.crt"):
        ServiceAccount.read(folder)


def test_outside_of_a_pod_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables that kubelet would set are named."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ClusterError, match="KUBERNETES_SERVICE_HOST"):
        ServiceAccount.read()

"""Where an API server is and who we are to it, as a kubeconfig says."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from runtime.kube.errors import ClusterError
from runtime.kube.kubeconfig import Kubeconfig


def write_config(path: Path, token: str = "one", **cluster: Any) -> str:  # noqa: S107 # no secret
    """Write a kubeconfig with one context."""
    server = {"server": "https://api.example.com:6443/", **cluster}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def test_the_server_and_the_token_are_those_of_the_context(
    tmp_path: Path,
) -> None:
    """The URL has no slash at its end: paths begin with one."""
    credentials = await Kubeconfig.read(write_config(tmp_path / "config"), "")
    assert credentials.server == "https://api.example.com:6443"
    assert await credentials.token() == "Bearer one"


async def test_a_refused_token_is_read_anew(tmp_path: Path) -> None:
    """And not before it was refused."""
    path = tmp_path / "config"
    credentials = await Kubeconfig.read(write_config(path), "here")
    write_config(path, "two")
    assert await credentials.token() == "Bearer one"
    credentials.note_refusal()
    assert await credentials.token() == "Bearer two"


async def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    """The file, and in whose words."""
    path = write_config(tmp_path / "config")
    with pytest.raises(ClusterError, match=f"kubeconfig {path}"):
        await Kubeconfig.read(path, "elsewhere")


async def test_a_server_is_verified_unless_the_kubeconfig_says_not_to(
    tmp_path: Path,
) -> None:
    """By its name as well."""
    careful = await Kubeconfig.read(write_config(tmp_path / "a"), "")
    context = careful.tls()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    careless: dict[str, Any] = {"insecure-skip-tls-verify": True}
    path = write_config(tmp_path / "b", **careless)
    context = (await Kubeconfig.read(path, "")).tls()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


async def test_the_proxy_of_the_kubeconfig_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it is that of the environment, with its exceptions."""
    monkeypatch.setenv("https_proxy", "http://env:1")
    monkeypatch.setenv("no_proxy", "")
    path = tmp_path / "config"
    plain = await Kubeconfig.read(write_config(path), "")
    assert plain.proxy() == "http://env:1"
    monkeypatch.setenv("no_proxy", "example.com")
    assert plain.proxy() is None
    own = await Kubeconfig.read(write_config(path, **{"proxy-url": "http://own:2"}), "")
    assert own.proxy() == "http://own:2"

"""The files that a control plane starts from: key, tokens, kubeconfigs, settings."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.lab.controlplane.options import ClientLimits, User

ADMIN = User("admin", ("system:masters",))
COMPONENTS = (
    User("system:kube-controller-manager", ("system:masters",)),
    User("system:kube-scheduler"),
)


def write_service_account_key(path: Path) -> None:
    """Write the key that signs service accounts' tokens: P-256 in SEC1 form.

    Go reads it without a public part and refuses an EC key in PKCS#8 here. A number of
    32 bytes is below the curve's order but for one in 2^32.
    """
    curve = bytes.fromhex("a00a06082a8648ce3d030107")
    body = b"\x02\x01\x01" + b"\x04\x20" + secrets.token_bytes(32) + curve
    text = base64.b64encode(b"\x30" + bytes([len(body)]) + body).decode()
    lines = ["-----BEGIN EC PRIVATE KEY-----", text, "-----END EC PRIVATE KEY-----"]
    path.write_text("\n".join(lines) + "\n")


def write_tokens(path: Path, users: Sequence[User]) -> dict[str, str]:
    """Write the API server's token file; gives each user's token by name."""
    tokens = {user.name: secrets.token_hex(16) for user in users}
    lines = [
        f'{tokens[user.name]},{user.name},{user.name},"{",".join(user.groups)}"'
        for user in users
    ]
    path.write_text("\n".join(lines) + "\n")
    return tokens


def write_kubeconfig(path: Path, server: str, authority: Path, token: str) -> None:
    """Write how to reach the API server with a token; JSON is YAML too."""
    cluster = {"server": server, "certificate-authority": str(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "current-context": "test",
    }
    path.write_text(json.dumps(config))


def write_scheduler_config(
    path: Path, kubeconfig: Path, limits: ClientLimits, binding_timeout: str = ""
) -> None:
    """Write kube-scheduler's settings: the defaults but for what is given."""
    connection = {
        "kubeconfig": str(kubeconfig),
        "qps": limits.qps,
        "burst": limits.burst,
    }
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
    }
    if binding_timeout:
        args = {
            "apiVersion": config["apiVersion"],
            "kind": "DynamicResourcesArgs",
            "bindingTimeout": binding_timeout,
        }
        plugin = {"name": "DynamicResources", "args": args}
        config["profiles"] = [
            {"schedulerName": "default-scheduler", "pluginConfig": [plugin]}
        ]
    path.write_text(json.dumps(config))

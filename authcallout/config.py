"""Configuration of the auth callout, from variables that begin with `AUTHCALLOUT_`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from runtime.settings import ServiceConfig


class AuthCalloutConfig(ServiceConfig, frozen=True, kw_only=True):
    """Each field is a variable: `audience` is `AUTHCALLOUT_AUDIENCE`."""

    issuer_file: Annotated[str, Meta(min_length=1)]
    """File with the seed (`SA...`) that signs users; servers have its public key."""
    curve_file: Annotated[str, Meta(min_length=1)]
    """File with the seed (`SX...`) that decrypts requests of the servers."""
    audience: Annotated[str, Meta(min_length=1)] = "nats.moorings.dev"
    """Audience that tokens must have."""
    agents: tuple[str, ...] = ("system:serviceaccount:moorings-system:nodeagent",)
    """Usernames of the node agents' service accounts."""
    kubeconfig: str = ""
    """Kubeconfig of the cluster; empty: the pod's service account."""
    lifetime_s: Annotated[float, Meta(ge=1, le=86_400)] = 600.0
    """Seconds after which, or up to a fifth earlier, a connection must show its token
    again; never later than the token expires."""
    remember_s: Annotated[float, Meta(ge=0, le=60)] = 5.0
    """Seconds for which an answer is reused for the same token and request."""
    review_s: Annotated[float, Meta(gt=0)] = 3.0
    """Seconds that the API server may take to check a connection; less than nats-server
    waits for us (5 s)."""
    in_flight: Annotated[int, Meta(ge=1, le=1024)] = 32
    """Connections that are checked at once."""
    waiting: Annotated[int, Meta(ge=1, le=65_536)] = 2048
    """Connections that may wait for it; more are left to the server's own timeout."""

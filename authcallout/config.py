"""Configuration of the auth callout, from variables that begin with `AUTHCALLOUT_`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from runtime.settings import ServiceConfig


class AuthCalloutConfig(ServiceConfig, frozen=True, kw_only=True):
    """Each field is a variable: `audience` is `AUTHCALLOUT_AUDIENCE`."""

    issuer_file: Annotated[str, Meta(min_length=1)]
    """Holds the seed (`SA...`) that signs users; servers know its public key."""
    curve_file: Annotated[str, Meta(min_length=1)]
    """Holds the seed (`SX...`) that opens what servers seal for us."""
    audience: Annotated[str, Meta(min_length=1)] = "nats.moorings.dev"
    """Whom tokens must be for."""
    agents: tuple[str, ...] = ("system:serviceaccount:moorings-system:nodeagent",)
    """Usernames of the service accounts that are node agents."""
    kubeconfig: str = ""
    """How the API server is reached; empty: as the pod's service account."""
    lifetime_s: Annotated[float, Meta(ge=1, le=86_400)] = 600.0
    """After so long, or up to a fifth earlier, a connection must show its token again;
    never later than the token expires."""
    remember_s: Annotated[float, Meta(ge=0, le=60)] = 5.0
    """How long an answer holds for the same token and words."""
    review_s: Annotated[float, Meta(gt=0)] = 3.0
    """How long the API server may take for all questions about a connection; less
    than nats-server waits for us (5 s)."""
    in_flight: Annotated[int, Meta(ge=1, le=1024)] = 32
    """How many connections are looked into at once."""
    waiting: Annotated[int, Meta(ge=1, le=65_536)] = 2048
    """How many may wait for that; what is more is left to the server's own limit."""

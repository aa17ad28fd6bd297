"""Metrics of the auth callout."""

from __future__ import annotations

from prometheus_client import Counter

CONNECTIONS = Counter(
    "moorings_callout_requests_total",
    "Requests of NATS by their outcome: granted, or why nobody was let in.",
    ("outcome",),
)

"""Metrics of the auth callout."""

from __future__ import annotations

from prometheus_client import Counter

CONNECTIONS = Counter(
    "moorings_callout_requests_total",
    "Requests of NATS by outcome: granted, or why they were refused.",
    ("outcome",),
)

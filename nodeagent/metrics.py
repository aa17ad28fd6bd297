"""Metrics of the node agent's devices and of the claims that hold them.

The calls of kubelet are counted beside it, in kubelet/metrics.py, as any gRPC server
counts its own.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

DEVICES = Gauge(
    "moorings_devices", "Devices of this agent by health.", ("driver", "health")
)
ANNOUNCED = Counter(
    "moorings_announcements_total",
    "Announcements of a node that changed something.",
)
DRIFT = Gauge(
    "moorings_drift_devices",
    "Devices whose use differs from what was decided, by kind.",
    ("kind",),
)
OPERATIONS = Histogram(
    "moorings_dra_operations_duration_seconds",
    "Seconds to prepare or unprepare one claim.",
    ("driver", "operation_name", "is_error"),
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 45),
)
PREPARED = Gauge(
    "moorings_dra_prepared_claims", "Claims that are prepared.", ("driver",)
)

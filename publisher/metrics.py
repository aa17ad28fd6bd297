"""What the publisher counts; what is written and refused is planned elsewhere."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

MOST_DRIVERS = 32

WRITES = Counter(
    "moorings_writes_total",
    "Writes to the API server by what they are for and what became of them: written,"
    " conflict, gone, refused, denied, failed.",
    ("purpose", "result"),
)
FOREIGN_DEVICES = Gauge(
    "moorings_foreign_devices",
    "Devices in slices that are kube-scheduler's to give, by driver.",
    ("driver",),
)

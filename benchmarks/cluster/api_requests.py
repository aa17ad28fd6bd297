"""Which requests reached the API server, by its own metrics.

They do not say who sent them; verb, resource and subresource tell it well enough.
"""

from __future__ import annotations

import re
from collections import Counter

from benchmarks.report import Row
from tests.lab.controlplane.client import Kube

_LINE = re.compile(r"apiserver_request_total\{(.*)\} ([0-9.e+]+)")
_WEBHOOKS = re.compile(
    r"apiserver_(?:admission_webhook_request_total"
    r"|crd_conversion_webhook_duration_seconds_count)\{.*\} (\S+)"
)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION")
OURS = (
    "PATCH resourceclaims",
    "PATCH resourceclaims/status",
    "PATCH pods",
)
"""What of a gang's way only the publisher sends."""


async def requests(kube: Kube) -> Counter[str]:
    """Count all requests until now, by `VERB resource/subresource`."""
    counts: Counter[str] = Counter()
    for labels, value in _LINE.findall(await kube.text("/metrics")):
        given = dict(_LABEL.findall(labels))
        resource = "/".join(filter(None, (given["resource"], given["subresource"])))
        if resource:
            counts[f"{given['verb']} {resource}"] += int(float(value))
    return counts


async def webhook_calls(kube: Kube) -> int:
    """Count how often webhooks were asked until now: to validate and to convert."""
    counts = _WEBHOOKS.findall(await kube.text("/metrics"))
    return sum(int(float(count)) for count in counts)


def per_pod(counts: Counter[str], pods: int) -> Row:
    """Give the requests that write, a pod, ours first; rare ones are left out."""
    made = {
        name: count / pods
        for name, count in counts.most_common()
        if name.split()[0] in WRITES and count * 20 > pods
    }
    return {"publisher": sum(made.get(name, 0.0) for name in OURS), **made}

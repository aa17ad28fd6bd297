"""Messages about gangs as CloudEvents, whose attributes travel as headers.

In binary mode an event is the message as it is, with its attributes in headers that
begin with `ce-`. Pure.

Source: CloudEvents 1.0; its NATS protocol binding 1.0.3, 3.1 (binary content mode).
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from contracts.topics import GANG_TOPICS

SPEC_VERSION = "1.0"
TYPE_PREFIX = "dev.moorings.v1."
"""Followed by the type of the message, such as `GangAllocated`."""
_PLAIN = "!#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""Characters besides letters and digits that a header needs not escape."""
_ALL_PLAIN = re.compile(rf"[A-Za-z0-9{re.escape(_PLAIN)}]*")
_TOPICS = {topic.entity: topic for topic in GANG_TOPICS}


def make_attributes(
    subject: str, data: bytes, message_type: str, time: str
) -> dict[str, str]:
    """Return the headers of an event; none where the subject is not about a gang.

    The id follows from subject and bytes: what is sent again is the same event. `time`
    is RFC 3339.
    """
    topic = _TOPICS.get(subject.partition(".")[0])
    if topic is None or not message_type:
        return {}
    cluster, *names = topic.names_of(subject)
    return {
        "ce-specversion": SPEC_VERSION,
        "ce-id": sha256(subject.encode() + b"\0" + data).hexdigest()[:32],
        "ce-source": _encode_header(f"/moorings/{cluster}"),
        "ce-type": f"{TYPE_PREFIX}{message_type}",
        "ce-subject": _encode_header("/".join(names)),
        "ce-time": time,
        "ce-datacontenttype": "application/json",
    }


def _encode_header(value: str) -> str:
    """Write a value as a header may hold it (3.1.3.2)."""
    return value if _ALL_PLAIN.fullmatch(value) else quote(value, safe=_PLAIN)


def describe_headers() -> dict[str, Any]:
    """Return the JSON schema of the headers; none of them must be there."""
    described: dict[str, dict[str, Any]] = {
        "specversion": {"const": SPEC_VERSION},
        "id": {"description": "The same for what is sent again."},
        "source": {"examples": ["/moorings/local"]},
        "type": {"pattern": f"^{TYPE_PREFIX.replace('.', '[.]')}[A-Za-z]+$"},
        "subject": {"description": "The gang: its namespace and uid, as `a/b`."},
        "time": {"format": "date-time", "description": "When it was sent."},
        "datacontenttype": {"const": "application/json"},
    }
    return {
        "type": "object",
        "description": "CloudEvents 1.0, where the sender has them switched on.",
        "properties": {
            f"ce-{name}": {"type": "string", **schema}
            for name, schema in described.items()
        },
    }

"""Which name a gang has that is named after something else. Pure."""

from __future__ import annotations

from uuid import NAMESPACE_URL, uuid5

from contracts.names import GANG
from contracts.validate.names import MAX_LABEL

_DIGEST = 10
"""Characters that tell shortened names apart."""
_UUIDS = uuid5(NAMESPACE_URL, GANG)


def shorten_gang_name(name: str) -> str:
    """Make a name one that a gang may have: the value of a label."""
    if len(name) <= MAX_LABEL:
        return name
    digest = uuid5(_UUIDS, name).hex[:_DIGEST]
    return f"{name[: MAX_LABEL - _DIGEST - 1].rstrip('-.')}-{digest}"

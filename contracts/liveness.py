"""That a publisher leads, as the bus has it (subject `leads`).

Pods at the gate wait without a word where no publisher is. The last message stays when
it is gone, so that whoever reads the bus can say since when.
"""

from __future__ import annotations

from contracts.messages import ClusterMessage

LEADS_S = 20.0
"""How often it is said."""
SILENT_S = 90.0
"""Silence after which no publisher leads: its Lease has expired by then."""


class PublisherLeads(ClusterMessage, frozen=True, kw_only=True):
    """A publisher leads beside a cluster (subject `leads`)."""

    holder: str
    """As the Lease names it, without its process."""
    at: str
    """RFC 3339."""

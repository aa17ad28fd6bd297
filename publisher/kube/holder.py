"""The process that holds a Lease, as the end of the Lease's `holderIdentity`. Pure."""

from __future__ import annotations

from msgspec import Struct


class HolderProcess(Struct, frozen=True):
    """A process that holds a Lease, or would."""

    place: str
    """Digest of host, boot and namespaces; empty: not known."""
    pid: int
    began: str
    """When it began, in ticks since boot."""
    pod: str
    """Digest of the pod's uid; empty: none."""

    def add_to(self, identity: str) -> str:
        """Return an identity that names the process too."""
        return f"{identity}_{self.place}.{self.pid}.{self.began}.{self.pod}"


def read_holder(holder: str) -> HolderProcess | None:
    """Read the end of an identity; None: it does not name a process."""
    match holder.rpartition("_")[2].split("."):
        case [place, pid, began, pod] if (
            pid.isascii() and pid.isdigit() and len(pid) < 20
        ):
            return HolderProcess(place, int(pid), began, pod)
    return None


def name_holder(holder: str) -> str:
    """Return the identity of a Lease's holder as people know it."""
    return holder if read_holder(holder) is None else holder.rpartition("_")[0]

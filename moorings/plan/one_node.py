"""What is asked of one node: claims that no pod uses, all together. Pure.

That is the question which kube-scheduler asks its allocator for one pod and one node.
Gangs and pods are other questions, so they are refused rather than left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.device import ResourceSlice
from contracts.gang import Gang
from contracts.kubernetes.decode import KubernetesObject
from contracts.workload import Node, Pod, Workload
from moorings.errors import BadInputError, UsageError
from moorings.plan.objects import PlanObject
from moorings.views.names import name_some
from publisher.gangs.view import is_over


def check_one_node(entries: Iterable[PlanObject], node: str) -> None:
    """Require that everything that is asked can be asked of a node that is there.

    Raises:
        UsageError: the objects ask for more than claims.
        BadInputError: nothing says that there is such a node.
    """
    entries = list(entries)
    others = [name for entry in entries for name in _name_other(entry)]
    if others:
        raise UsageError(
            "--node asks for claims that no pod uses, on that node alone; it would "
            f"leave out {name_some(others)}"
        )
    values = [entry.decoded.value for entry in entries]
    if not _is_known(values, node):
        reason = "no Node of that name is in the input, and no ResourceSlice names it"
        raise BadInputError(f"--node {node}", reason)


def _name_other(entry: PlanObject) -> Iterator[str]:
    """Name an object that waits for a place, unless it is a claim."""
    value = entry.decoded.value
    if isinstance(value, Pod):
        asks = not value.spec.node_name and not is_over(value)
    else:
        asks = isinstance(value, Gang) or (
            isinstance(value, Workload) and bool(value.templates)
        )
    if asks:
        meta = value.metadata
        yield f"{entry.decoded.kind} {meta.namespace or 'default'}/{meta.name}"


def _is_known(values: list[KubernetesObject], node: str) -> bool:
    """Whether a node is in the input; without Nodes a selector may mean any node."""
    slices = [value.spec for value in values if isinstance(value, ResourceSlice)]
    named = {value.name for value in values if isinstance(value, Node)}
    if not named and any(
        each.all_nodes or each.node_selector is not None for each in slices
    ):
        return True
    named |= {each.node_name for each in slices if each.node_name}
    for each in slices:
        if each.per_device_node_selection:
            devices = each.devices
            named |= {device.node_name for device in devices if device.node_name}
            if any(d.all_nodes or d.node_selector is not None for d in devices):
                return True
    return node in named

"""Plans claims that no pod uses together on one node. Pure.

That is the question which kube-scheduler asks its allocator for one pod and one node.
Gangs, and pods that ask for devices or wait for us, are other questions, so they are
refused rather than left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contracts.device import ResourceSlice
from contracts.gang import Gang
from contracts.kubernetes.decode import KubernetesObject
from contracts.workload import Node, Pod, PodSpec, Workload
from moorings.errors import BadInputError, UsageError
from moorings.plan.extended_resources import asks_for_devices
from moorings.plan.made_objects import list_made_objects
from moorings.plan.objects import PlanObject
from moorings.plan.pods import has_gate, read_owner
from moorings.plan.replicas import count_pods, find_makers
from moorings.views.names import name_some
from publisher.gangs.view import is_over


def check_one_node(entries: Iterable[PlanObject], node: str) -> None:
    """Require that everything can be planned on the one node, and that it exists.

    Raises:
        UsageError: the objects ask for more than claims.
        BadInputError: nothing says that there is such a node.
    """
    entries = list(entries)
    others = list(_name_others(entries))
    if others:
        raise UsageError(
            "--node plans only claims that no pod uses; it would leave out "
            f"{name_some(others)}"
        )
    values = [entry.decoded.value for entry in entries]
    if not _is_known(values, node):
        reason = "no Node or ResourceSlice of the input has that name"
        raise BadInputError(f"--node {node}", reason)


def _name_others(entries: list[PlanObject]) -> Iterator[str]:
    """Name what asks for devices, or waits for us, unless it is a claim."""
    made = [(entry, each) for entry in entries for each in list_made_objects(entry)]
    values = [each.decoded.value for _, each in made]
    pods = [value for value in values if isinstance(value, Pod)]
    workloads = [value for value in values if isinstance(value, Workload)]
    makers = {id(workload) for workload in find_makers(workloads, pods)}
    for (entry, each), value in zip(made, values, strict=True):
        if isinstance(value, Pod):
            waits = not value.spec.node_name and not is_over(value)
            asks = waits and _is_ours(value.spec)
        elif isinstance(value, Workload):
            asks = id(value) in makers and _makes_asking_pods(value, each)
        else:
            asks = isinstance(value, Gang)
        if asks:
            meta = entry.decoded.value.metadata
            yield f"{entry.decoded.kind} {meta.namespace or 'default'}/{meta.name}"


def _makes_asking_pods(workload: Workload, entry: PlanObject) -> bool:
    owner = read_owner(entry)
    return any(
        count_pods(replicated, owner) > 0 and _is_ours(replicated.template.spec)
        for replicated in workload.templates
    )


def _is_ours(spec: PodSpec) -> bool:
    return has_gate(spec) or asks_for_devices(spec)


def _is_known(values: list[KubernetesObject], node: str) -> bool:
    """True if a node is in the input; without Nodes a selector may match any node."""
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

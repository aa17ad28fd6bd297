"""The query of a batch: what its pods ask of nodes and devices.

All else is invisible to it: two nodes that answer a query alike are of one kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from contracts.claim import DeviceToleration
from contracts.pods.node_resources import PODS
from solver.kinds.node_fit import (
    Load,
    NodeFit,
    Step,
    fit_of,
    needs_of,
    steps_of,
)
from solver.kinds.topology import (
    attribute_of,
    list_labels,
    list_spanning_attributes,
)
from solver.problem.affinity.rules import CountedRule, DomainRule
from solver.problem.attributes import Element
from solver.problem.gangs import ClaimPart, GangPart, MemberPart, SubrequestPart


class RequestKind(Struct, frozen=True, cache_hash=True):
    """What decides whether a device may serve a (sub)request."""

    selectors: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    all_devices: bool
    admin: bool = False
    capacity: tuple[tuple[str, int], ...] = ()
    """(name, 1e-9 units), sorted."""
    values: tuple[tuple[str, Element], ...] = ()
    """(attribute, the one value that a device has of it)."""


class Column(Struct, frozen=True, order=True):
    """A value of devices that constraints compare."""

    attribute: str
    """Fully qualified name."""
    expression: str = ""
    """CEL that derives it; empty: it is published."""


class Query(Struct, frozen=True, cache_hash=True):
    """What this batch reads of a node: all else is invisible to it."""

    requests: tuple[RequestKind, ...]
    columns: tuple[Column, ...]
    fits: tuple[NodeFit, ...] = (NodeFit(),)
    """What some pod asks of its node in kind."""
    resources: tuple[str, ...] = ()
    """Resources of nodes that some pod asks for; sorted."""
    counted: tuple[CountedRule, ...] = ()
    """What rules between pods make nodes have besides."""
    steps: tuple[Step, ...] = ()
    """Which amounts of them matter, by resource, then by what is counted."""
    domains: tuple[DomainRule, ...] = ()
    """Rules between pods on several nodes."""
    labels: tuple[str, ...] = ()
    """Labels of nodes that a gang's topology has as keys; sorted."""
    named: tuple[int, ...] = ()
    """Columns that are compared between nodes, so that the very values matter."""
    is_exact: bool = False
    """True if every device is to be told apart, alike or not."""

    def column_of_attribute(self, name: str) -> int:
        """Find the column of what drivers publish under a name."""
        return self.columns.index(Column(name))

    @property
    def is_by_device(self) -> bool:
        """True if groups are of one device each: counts cannot say who had it first."""
        return self.is_exact or any(kind.admin for kind in self.requests)


def make_query(
    gangs: Sequence[GangPart], countable: list[MemberPart], *, is_exact: bool
) -> Query:
    """Collect what some pod asks of devices and nodes.

    `gangs` are to be decided, `countable` is what is counted of expected members.
    """
    batch = [member for gang in gangs for member in gang.members]
    # What is expected comes first: it stays the same from batch to batch, and with it
    # what was read of nodes.
    members = [*countable, *batch]
    claims = [claim for member in members for claim in member.claims]
    alternatives = (
        alternative
        for claim in claims
        for request in claim.requests
        for alternative in request.alternatives
    )
    names = {name for member in members for name in (PODS, *member.resources)}
    resources = tuple(sorted(names))
    resolved = [member.resolved for member in batch]
    counted = tuple(dict.fromkeys(t.rule for each in resolved for t in each.takes))
    domains = tuple(dict.fromkeys(r.rule for each in resolved for r in each.roles))
    loads = {_load_of(member, resources, counted) for member in batch}
    loads |= {_load_of_expected(member, resources, counted) for member in countable}
    named = {column for gang in gangs for column in _list_spanning_columns(gang)}
    compared = {column for claim in claims for column in _list_columns(claim)}
    compared |= {column for gang in gangs for column in _list_pod_columns(gang)}
    columns = tuple(sorted(named | compared))
    return Query(
        requests=tuple(dict.fromkeys(map(request_kind_of, alternatives))),
        columns=columns,
        fits=tuple(dict.fromkeys(map(fit_of, members))),
        resources=resources,
        counted=counted,
        steps=steps_of(loads, len(resources) + len(counted)),
        domains=domains,
        labels=list_labels(gangs),
        named=tuple(columns.index(column) for column in sorted(named)),
        is_exact=is_exact,
    )


def request_kind_of(sub: SubrequestPart) -> RequestKind:
    """Keep of a (sub)request only what decides which devices may serve it."""
    return RequestKind(
        sub.selectors,
        sub.tolerations,
        sub.all_devices,
        sub.admin_access,
        tuple(sorted((name, amount.nano) for name, amount in sub.capacity.items())),
        sub.values,
    )


def _load_of(
    member: MemberPart, resources: tuple[str, ...], counted: tuple[CountedRule, ...]
) -> Load:
    """Return what a pod takes of its node: devices of its own, and amounts."""
    requests = [request for claim in member.claims for request in claim.requests]
    devices = sum(
        min(map(_count_devices, request.alternatives)) for request in requests
    )
    return Load(devices, needs_of(member, resources, counted))


def _load_of_expected(
    member: MemberPart, resources: tuple[str, ...], counted: tuple[CountedRule, ...]
) -> Load:
    """Return what an expected pod counts as: its largest request alone."""
    requests = [request for claim in member.claims for request in claim.requests]
    devices = max(
        (_count_devices(request.alternatives[0]) for request in requests), default=0
    )
    return Load(devices, needs_of(member, resources, counted))


def _count_devices(sub: SubrequestPart) -> int:
    if sub.admin_access:
        return 0
    return 1 if sub.all_devices else sub.count


def list_named(claim: ClaimPart) -> Iterator[tuple[SubrequestPart, set[str]]]:
    """Yield the alternatives of a claim, with the names that may mean them."""
    for request in claim.requests:
        for rank, sub in enumerate(request.alternatives):
            yield sub, {request.name, request.result_name(rank)}


def _list_columns(claim: ClaimPart) -> Iterator[Column]:
    for constraint in claim.constraints:
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        for sub, _ in list_named(claim):
            yield column_of(sub, name)


def column_of(sub: SubrequestPart, name: str) -> Column:
    """Return how a request has an attribute: derived by itself, else published."""
    for attribute, expression in sub.derived_attributes:
        if attribute == name:
            return Column(name, expression)
    return Column(name)


def _list_pod_columns(gang: GangPart) -> Iterator[Column]:
    """Yield what the constraints of a gang compare, whatever they name."""
    for constraint in gang.constraints:
        yield from _columns_of(gang, attribute_of(constraint))


def _list_spanning_columns(gang: GangPart) -> Iterator[Column]:
    """Yield what a gang compares between nodes."""
    for name, counts_derived in list_spanning_attributes(gang):
        if counts_derived:
            yield from _columns_of(gang, name)
        else:
            yield Column(name)


def _columns_of(gang: GangPart, name: str) -> Iterator[Column]:
    """Return how each request of a gang has an attribute."""
    for member in gang.members:
        for claim in member.claims:
            for sub, _ in list_named(claim):
                yield column_of(sub, name)

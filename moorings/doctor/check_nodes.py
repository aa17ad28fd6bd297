"""Nodes whose devices nobody can prepare, and pools that collide. Pure.

Kubernetes has no object that says which driver plugins a kubelet knows. What shows is
what a driver publishes for a node, and what its agent says on the bus.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from contracts.announcing import find_speakers
from contracts.counts import counted
from contracts.device import ResourcePool
from contracts.ids import NodeName, PoolID
from contracts.messages import DevicesAnnounced
from moorings.doctor.facts import BusFacts, ClusterFacts, Json, Unread
from moorings.doctor.findings import CheckLine, fail, ok, unread, warn
from moorings.views.names import name_some

AGENT_LABEL = "moorings.dev/agent"
"""Of the nodes on which the DaemonSet runs an agent (k8s/base)."""
_HASTY = 5.0
"""More messages a second are no agent's that works."""
_NOTHING_ANNOUNCED = "have an agent that is heard from, but announced nothing"
_LOOK_AT_LOG = "look in the agent's log: it may fail to list its devices"
_SILENT = "announced devices, but their agents are silent: no gang is placed there"
_START = "start the agent; after a day of silence its devices are forgotten"
_Pool = tuple[str, str]
_Agents = tuple[frozenset[str], Mapping[NodeName, DevicesAnnounced]]


def check_nodes(facts: ClusterFacts, bus: BusFacts | None) -> Iterator[CheckLine]:
    """Check that whoever publishes devices is there to prepare them."""
    if isinstance(facts.nodes, Unread):
        yield unread("nodes.driver", facts.nodes)
        return
    nodes = {str(node["metadata"]["name"]): node for node in facts.nodes}
    yield _check_drivers(nodes, facts)
    labelled = {
        name
        for name, node in nodes.items()
        if (node["metadata"].get("labels") or {}).get(AGENT_LABEL) == "true"
    }
    if bus is not None:
        yield from _check_agents(nodes, labelled, bus)


def _check_drivers(nodes: Mapping[str, Json], facts: ClusterFacts) -> CheckLine:
    """Find nodes where a claim is allocated and its driver publishes nothing."""
    name = "nodes.driver"
    slices, claims = facts.slices, facts.claims
    if isinstance(slices, Unread):
        return unread(name, slices)
    if isinstance(claims, Unread):
        return unread(name, claims)
    published = _list_publishers(slices)
    missing = {
        f"{driver} on {node}"
        for driver, node in _list_holders(claims)
        if node in nodes and not {node, ""} & published.get(driver, set())
    }
    if missing:
        return fail(
            name,
            "claims are allocated on nodes where their driver publishes nothing: "
            f"{name_some(missing)}; their pods do not start",
            "check the driver's pod on that node, or delete the pods of these claims",
        )
    count = len({node for where in published.values() for node in where} - {""})
    return ok(
        name,
        f"{count} of {counted(len(nodes), 'node has', 'nodes have')} devices of "
        f"{counted(len(published), 'driver')}; no claim is held elsewhere",
    )


def _list_publishers(slices: Iterable[Json]) -> dict[str, set[str]]:
    """Return by driver the nodes for which it publishes; "": for several at once."""
    published: defaultdict[str, set[str]] = defaultdict(set)
    for item in slices:
        spec = item["spec"]
        published[spec["driver"]].add(str(spec.get("nodeName") or ""))
    return published


def _list_holders(claims: Iterable[Json]) -> Iterator[tuple[str, str]]:
    """List drivers and the nodes on which claims hold devices of them."""
    for claim in claims:
        allocation = (claim.get("status") or {}).get("allocation") or {}
        results = (allocation.get("devices") or {}).get("results") or ()
        for node in _read_nodes(allocation.get("nodeSelector") or {}):
            for result in results:
                yield str(result["driver"]), node


def _read_nodes(selector: Json) -> Iterator[str]:
    """Read the nodes that a selector names, as allocations of local devices do."""
    for term in selector.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("operator") == "In":
                yield from field.get("values") or ()


def _check_agents(
    nodes: Mapping[str, Json], labelled: set[str], bus: BusFacts
) -> Iterator[CheckLine]:
    """Check that agents are heard of where they should run, and nowhere else."""
    name, agents = "nodes.agent", _read_agents(bus)
    if isinstance(agents, Unread):
        yield unread(name, agents)
        return
    heard, known = agents
    problems = (
        (heard - known.keys(), _NOTHING_ANNOUNCED, _LOOK_AT_LOG),
        (
            labelled - heard,
            "have the agent's label, but no agent is heard from",
            f"check the agent's pod and log, or remove the label {AGENT_LABEL}",
        ),
        (known.keys() - heard - labelled, _SILENT, _START),
        (
            (heard | known.keys()) - nodes.keys(),
            "have an agent but no Node: nothing is published for them",
            "set the agent's NODEAGENT_NODE to the name of its Node",
        ),
    )
    are = counted(len(heard), "agent is", "agents are")
    yield from _warn_or_ok(
        name, problems, f"{are} heard from, all where they should be"
    )


def check_agents_on_bus(bus: BusFacts) -> Iterator[CheckLine]:
    """Check the agents of a bus of which no cluster says where they should be."""
    name, agents = "nodes.agent-on-bus", _read_agents(bus)
    if isinstance(agents, Unread):
        yield unread(name, agents)
        return
    heard, known = agents
    if not (heard or known):
        yield warn(
            name,
            "nothing is announced, and no node agent is heard from: there are no "
            "devices but those of other drivers' ResourceSlices",
            "start node agents on this bus, and see that they may connect",
        )
        return
    problems = (
        (heard - known.keys(), _NOTHING_ANNOUNCED, _LOOK_AT_LOG),
        (known.keys() - heard, _SILENT, _START),
    )
    are = counted(len(heard), "agent is", "agents are")
    yield from _warn_or_ok(
        name, problems, f"{are} heard from, and announced what they have"
    )


def check_pace(bus: BusFacts) -> Iterator[CheckLine]:
    """Find agents that say something new so often that much of it is passed over."""
    hasty = [
        f"{node} ({rate:.0f} messages a second)"
        for node, rate in sorted(bus.said.items())
        if rate > _HASTY
    ]
    if hasty:
        yield warn(
            "nodes.pace",
            f"say something new of their devices all the time: {name_some(hasty)}; the "
            "solver reads one message of a node a second, and the last",
            "look in the agent's log: a source flaps, or somebody else speaks as the "
            "node",
        )


def _read_agents(bus: BusFacts) -> Unread | _Agents:
    """Return whose agents are heard from, and what nodes announced."""
    if isinstance(bus.heard, Unread):
        return bus.heard
    if isinstance(bus.inventories, Unread):
        return bus.inventories
    return bus.heard, bus.inventories


def _warn_or_ok(
    name: str, problems: Iterable[tuple[Collection[str], str, str]], fine: str
) -> Iterator[CheckLine]:
    """Warn of each problem that any nodes have: these, the problem, the remedy."""
    found = [problem for problem in problems if problem[0]]
    for nodes, what, remedy in found:
        those = counted(len(nodes), "node")
        yield warn(name, f"{those} {what}: {name_some(nodes)}", remedy)
    if not found:
        yield ok(name, fine)


def check_published_pools(facts: ClusterFacts) -> Iterator[CheckLine]:
    """Check the cluster's ResourceSlices: pools are whole, with one publisher each."""
    name = "pools.cluster"
    if isinstance(facts.slices, Unread):
        yield unread(name, facts.slices)
        return
    pools: defaultdict[_Pool, list[Json]] = defaultdict(list)
    for item in facts.slices:
        spec = item["spec"]
        pools[spec["driver"], spec["pool"]["name"]].append(item)
    problems = [_describe_pool(pool, slices) for pool, slices in pools.items()]
    broken = sorted(filter(None, problems))
    if broken:
        yield fail(
            name,
            f"{counted(len(broken), 'pool')} cannot be used: {name_some(broken)}",
            "only one driver may publish a pool: give each pool its own name "
            "(such as its node's); then kubectl delete the stale slices",
        )
    else:
        whole = counted(len(pools), "pool")
        yield ok(name, f"{whole}, each complete and from one publisher")


def _describe_pool(pool: _Pool, slices: list[Json]) -> str:
    """Return what is wrong with a pool by its slices; empty: nothing."""
    title = "/".join(pool)
    specs = [item["spec"] for item in slices]
    # Of any generation: two who publish one pool outdo each other's.
    nodes = {str(spec["nodeName"]) for spec in specs if spec.get("nodeName")}
    if len(nodes) > 1:
        return f"{title} (of nodes {', '.join(sorted(nodes))})"
    newest = max(spec["pool"]["generation"] for spec in specs)
    current = [spec for spec in specs if spec["pool"]["generation"] == newest]
    names = Counter(str(d["name"]) for s in current for d in s.get("devices") or ())
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        return f"{title} (has {', '.join(twice)} twice)"
    wanted = current[0]["pool"]["resourceSliceCount"]
    if len(current) != wanted:
        return f"{title} ({len(current)} of {counted(wanted, 'slice')})"
    return ""


def check_announced_pools(facts: BusFacts) -> Iterator[CheckLine]:
    """Check that no agent announces a pool of another node."""
    name = "pools.bus"
    if isinstance(facts.inventories, Unread):
        yield unread(name, facts.inventories)
        return
    pools = _list_announced(facts.inventories.values())
    contested, ignored = list[str](), list[str]()
    for pool, announced in pools.items():
        speakers = find_speakers(pool.pool, announced)
        if len(speakers) > 1:
            contested.append(f"{pool} (by {', '.join(sorted(announced))})")
        elif others := announced.keys() - set(speakers):
            ignored.append(f"{pool} (by {', '.join(sorted(others))})")
    if contested:
        yield fail(
            name,
            f"announced by more than one node: {name_some(contested)}; nobody is given "
            "their devices, and the publisher keeps the slices as they were",
            "give each node's pool a name of its own, such as the node's",
        )
    if ignored:
        yield warn(
            name,
            f"announced by nodes that they are not on: {name_some(ignored)}; what "
            "these nodes say of them does not count",
            "check the agents of these nodes: one may be forged, or wrongly set up",
        )
    if not (contested or ignored):
        are_announced = counted(len(pools), "pool is", "pools are")
        yield ok(name, f"{are_announced} announced, each by one node")


def _list_announced(
    inventories: Iterable[DevicesAnnounced],
) -> dict[PoolID, dict[NodeName, ResourcePool]]:
    """List what each node announces of each pool."""
    pools: defaultdict[PoolID, dict[NodeName, ResourcePool]] = defaultdict(dict)
    for inventory in inventories:
        for pool in inventory.pools:
            pools[PoolID(pool.driver, pool.name)][inventory.node] = pool
    return pools

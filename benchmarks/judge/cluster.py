"""A drawn cluster while pods are placed on it, and the pods that want a place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.judge.expressions import Predicate, Value, read_expression

Json = Any
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def read_quantity(text: str | int) -> int:
    """Read an amount, in thousandths."""
    text = str(text)
    if text[-2:] in _UNITS:
        return int(text[:-2]) * _UNITS[text[-2:]] * 1000
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


@dataclass
class Device:
    """A device; one with `room` is shared, all others have one user."""

    name: str
    attributes: dict[str, Value]
    draws: dict[str, dict[str, int]]
    room: dict[str, int] | None
    is_free: bool = True


@dataclass
class Node:
    """What is left of a node."""

    name: str
    labels: dict[str, str]
    cpu: int
    memory: int
    devices: dict[str, Device] = field(default_factory=dict)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    version: int = 0
    """Grows with each change."""

    @property
    def load(self) -> int:
        """Count what is free: devices, or the capacity of shared ones."""
        rooms = [d.room for d in self.devices.values() if d.room is not None]
        if rooms:
            return sum(sum(room.values()) for room in rooms)
        return sum(device.is_free for device in self.devices.values())


@dataclass(frozen=True)
class Request:
    """Devices of one kind for a claim."""

    name: str
    count: int
    selects: tuple[Predicate, ...]
    key: tuple[str, ...]
    """Equal for requests that select the same."""
    amounts: dict[str, int]
    """Of the capacity of each shared device."""


@dataclass(frozen=True)
class Claim:
    """Requests whose devices agree in an attribute, if one is named."""

    name: str
    requests: tuple[Request, ...]
    match: tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """Equal pods of a gang."""

    name: str
    count: int
    claims: tuple[Claim, ...]
    cpu: int
    memory: int
    likeness: str
    """Equal for members whose pods ask for the same."""


@dataclass(frozen=True)
class Domain:
    """All pods, or groups of so many by index, have one value of a label."""

    key: str
    group: int | None


@dataclass(frozen=True)
class Gang:
    """Members that are in together or not at all."""

    name: str
    members: tuple[Member, ...]
    domains: tuple[Domain, ...]
    weight: int


class Cluster:
    """Nodes by name and gangs in their order, as the objects say.

    Raises:
        ValueError: there is something in them that is not understood here.
    """

    def __init__(self, objects: Iterable[Json]) -> None:
        kinds: dict[str, list[Json]] = {}
        for item in objects:
            kinds.setdefault(item["kind"], []).append(item)
        known = {"DeviceClass", "Node", "ResourceSlice", "Gang"}
        _allow(kinds, known)
        self._driver = kinds["ResourceSlice"][0]["spec"]["driver"]
        self._classes = {
            item["metadata"]["name"]: _expressions(item["spec"])
            for item in kinds["DeviceClass"]
        }
        self._predicates: dict[str, Predicate] = {}
        self._matching: dict[tuple[str, str, tuple[str, ...]], bool] = {}
        self.nodes = {node.name: node for node in map(_read_node, kinds["Node"])}
        for item in kinds["ResourceSlice"]:
            self._add_slice(item["spec"])
        self.gangs = [self._read_gang(item) for item in kinds["Gang"]]

    def matches(self, node: Node, device: Device, request: Request) -> bool:
        """Return True if a request may have a device."""
        key = node.name, device.name, request.key
        if key not in self._matching:
            self._matching[key] = all(
                selects(device.attributes) for selects in request.selects
            )
        return self._matching[key]

    def _add_slice(self, spec: Json) -> None:
        _allow(spec, {"driver", "nodeName", "pool", "devices", "sharedCounters"})
        node = self.nodes[spec["nodeName"]]
        for item in spec.get("sharedCounters", ()):
            node.counters[item["name"]] = _amounts(item["counters"])
        for item in spec.get("devices", ()):
            node.devices[item["name"]] = self._read_device(item)

    def _read_device(self, item: Json) -> Device:
        known = {"name", "attributes", "capacity", "consumesCounters"}
        _allow(item, known | {"allowMultipleAllocations"})
        is_shared = item.get("allowMultipleAllocations", False)
        return Device(
            name=item["name"],
            attributes={
                key.removeprefix(f"{self._driver}/"): next(iter(value.values()))
                for key, value in item["attributes"].items()
            },
            draws={
                drawn["counterSet"]: _amounts(drawn["counters"])
                for drawn in item.get("consumesCounters", ())
            },
            room=_amounts(item["capacity"]) if is_shared else None,
        )

    def _read_gang(self, item: Json) -> Gang:
        spec = item["spec"]
        _allow(spec, {"members", "topology", "weight"})
        members = tuple(map(self._read_member, spec["members"]))
        devices = sum(
            member.count * request.count
            for member in members
            for claim in member.claims
            for request in claim.requests
        )
        return Gang(
            name=item["metadata"]["name"],
            members=members,
            domains=tuple(map(_read_domain, spec.get("topology", ()))),
            weight=spec.get("weight", devices),
        )

    def _read_member(self, item: Json) -> Member:
        _allow(item, {"name", "count", "claims", "node"})
        asked = item["node"]["resources"]
        _allow(asked, {"cpu", "memory"})
        return Member(
            name=item["name"],
            count=item["count"],
            claims=tuple(map(self._read_claim, item["claims"])),
            cpu=read_quantity(asked["cpu"]),
            memory=read_quantity(asked["memory"]),
            likeness=repr((item["claims"], asked)),
        )

    def _read_claim(self, item: Json) -> Claim:
        spec = item["spec"]["devices"]
        _allow(spec, {"requests", "constraints"})
        constraints = spec.get("constraints", ())
        for constraint in constraints:
            _allow(constraint, {"matchAttribute"})
        prefix = f"{self._driver}/"
        return Claim(
            name=item["name"],
            requests=tuple(map(self._read_request, spec["requests"])),
            match=tuple(c["matchAttribute"].removeprefix(prefix) for c in constraints),
        )

    def _read_request(self, item: Json) -> Request:
        _allow(item, {"name", "exactly"})
        asked = item["exactly"]
        known = {"deviceClassName", "allocationMode", "count", "selectors", "capacity"}
        _allow(asked, known)
        key = (*self._classes[asked["deviceClassName"]], *_expressions(asked))
        return Request(
            name=item["name"],
            count=asked["count"],
            selects=tuple(map(self._predicate, key)),
            key=key,
            amounts={
                name: read_quantity(amount)
                for name, amount in asked.get("capacity", {})
                .get("requests", {})
                .items()
            },
        )

    def _predicate(self, text: str) -> Predicate:
        if text not in self._predicates:
            self._predicates[text] = read_expression(text, self._driver)
        return self._predicates[text]


class Ledger:
    """What was taken, so that it can be given back in reverse."""

    def __init__(self) -> None:
        self._taken: list[tuple[Node, Device | None, Mapping[str, int], str]] = []

    def __len__(self) -> int:
        return len(self._taken)

    def take_device(self, node: Node, device: Device, amounts: dict[str, int]) -> bool:
        """Take a device or a share of it, if there is enough."""
        if device.room is not None:
            if any(device.room[name] < need for name, need in amounts.items()):
                return False
            for name, need in amounts.items():
                device.room[name] -= need
        elif not device.is_free or any(
            node.counters[name][counter] < need
            for name, counter, need in _draws(device)
        ):
            return False
        else:
            device.is_free = False
            for name, counter, need in _draws(device):
                node.counters[name][counter] -= need
        self._taken.append((node, device, amounts, ""))
        return True

    def take_node(self, node: Node, member: Member) -> None:
        """Take CPU and memory for a pod."""
        node.cpu -= member.cpu
        node.memory -= member.memory
        node.version += 1
        needs = {"cpu": member.cpu, "memory": member.memory}
        self._taken.append((node, None, needs, member.name))

    def undo(self, to: int = 0) -> None:
        """Give back what was taken since the ledger had that length."""
        while len(self._taken) > to:
            node, device, amounts, _ = self._taken.pop()
            node.version += 1
            if device is None:
                node.cpu += amounts["cpu"]
                node.memory += amounts["memory"]
            elif device.room is not None:
                for name, need in amounts.items():
                    device.room[name] += need
            else:
                device.is_free = True
                for name, counter, need in _draws(device):
                    node.counters[name][counter] += need

    def nodes(self, since: int = 0) -> dict[str, Node]:
        """List the nodes that something was taken of."""
        return {node.name: node for node, *_ in self._taken[since:]}

    def pods(self) -> Iterator[tuple[str, Node, list[Device]]]:
        """List pods by member, each with its devices in the order of its requests."""
        devices: list[Device] = []
        for node, device, _, member in self._taken:
            if device is not None:
                devices.append(device)
            else:
                yield member, node, devices
                devices = []


def _draws(device: Device) -> Iterator[tuple[str, str, int]]:
    for name, counters in device.draws.items():
        for counter, need in counters.items():
            yield name, counter, need


def _read_node(item: Json) -> Node:
    amounts = item["status"]["allocatable"]
    return Node(
        name=item["metadata"]["name"],
        labels=item["metadata"]["labels"],
        cpu=read_quantity(amounts["cpu"]),
        memory=read_quantity(amounts["memory"]),
    )


def _read_domain(item: Json) -> Domain:
    _allow(item, {"key", "groupSize"})
    return Domain(item["key"], item.get("groupSize"))


def _amounts(counters: Json) -> dict[str, int]:
    return {name: read_quantity(item["value"]) for name, item in counters.items()}


def _expressions(item: Json) -> tuple[str, ...]:
    return tuple(s["cel"]["expression"] for s in item.get("selectors", ()))


def _allow(item: Json, known: set[str]) -> None:
    if unknown := set(item) - known:
        raise ValueError(f"not understood: {', '.join(sorted(unknown))}")

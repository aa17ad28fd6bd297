"""What must hold in every game with the plans, whatever happens in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from contracts.codec import to_builtins
from contracts.ids import GangUID
from contracts.lifecycle import LifecycleMessage, is_by_publisher
from contracts.messages import (
    AllocationWritten,
    CancelGang,
    GangAllocated,
    GangPending,
    GangRejected,
    GangReleased,
    GatesOpened,
    ReleaseGang,
    SubmitGang,
)
from contracts.names import ATTEMPT, GANG, GANG_UID, INDEX, VOID
from contracts.pods.node_affinity import read_pinned_node
from publisher.gangs.patches import Purpose
from tests import builders
from tests.simulation.players import Bus, Solver
from tests.simulation.publisher import Publisher
from tests.simulation.wholeness import Wholeness
from tests.simulation.world import (
    THEIRS,
    UNFIT,
    Json,
    World,
    Written,
    claims_of,
    devices_of,
    is_gated,
    is_kept,
    is_opening,
    is_over,
    nodes_of,
    uid_of,
)

NS = builders.NAMESPACE
ENDS = (GangReleased, GangRejected, GatesOpened, CancelGang, ReleaseGang)
"""After these a submission asks for nothing more."""
WAITS = ("Waiting", "Pending", "Rejected", "Cancelled")
"""The phases in which pods may be left."""


class Laws:
    """Looks at every write and every message."""

    def __init__(
        self, world: World, bus: Bus, solver: Solver, *, rival: bool, late: bool
    ) -> None:
        self._world = world
        self._bus = bus
        self._solver = solver
        self._rival = rival
        self._late = late
        self._opened: set[str] = set()
        """Gangs of which a gate was opened."""
        self._confirmed = self._submitted = 0
        """Confirmations and submissions that were looked at."""
        self.opened = 0
        self._wholeness = Wholeness(world, bus)
        world.watchers.append(self._check_write)

    # --- writes ---------------------------------------------------------------------

    def _check_write(self, written: Written) -> None:
        if written.patch.purpose is Purpose.ALLOCATE and not self._late:
            self._devices_are_free(written)
        if is_opening(written):
            self.opened += 1
            self._gate_may_open(written)
            self._wholeness.check_gate(written)
            self._opened.add(_notes(written.after)[GANG_UID])

    def _devices_are_free(self, written: Written) -> None:
        """No device is in two allocations."""
        mine = devices_of(written.after)
        for key, claim in self._world.all("ResourceClaim"):
            if key != written.patch.key and not self._is_news(key):
                assert not mine & devices_of(claim), f"{key} holds the same device"

    def _gate_may_open(self, written: Written) -> None:
        """All claims of all pods of the gang hold what was decided, and are said to."""
        notes = _notes(written.after)
        uid, attempt = GangUID(notes[GANG_UID]), int(notes[ATTEMPT])
        assert any(
            isinstance(message, AllocationWritten)
            and (message.uid, message.attempt) == (uid, attempt)
            for _, message in self._bus.streams["CONF"]
        ), "a gate was opened before the claims were said to be written"
        decision = self._solver.allocated[uid, attempt]
        node = read_pinned_node(written.after["spec"]["affinity"])
        for pod, keys in self._pods(uid, decision, written):
            mine = uid_of(pod) == uid_of(written.after)
            if not mine and (uid in self._opened or uid in _void(pod)):
                continue
            for key in claims_of(f"{NS}/any", pod):
                if not self._is_news(key) and f"-{THEIRS}" not in key:
                    self._claim_is_right(key, keys.get(key), pod)
                    if mine:
                        claim = self._world.objects["ResourceClaim", key]
                        held = claim["status"]["allocation"]
                        assert nodes_of(held) == {node}, f"{key} is not on {node}"
                        if key in keys:
                            self._device_is_mine(key, claim)

    def _claim_is_right(self, key: str, decided: Json | None, pod: Json) -> None:
        claim = self._world.get("ResourceClaim", key)
        assert claim is not None, f"{key} is gone"
        held = devices_of(claim)
        assert held, f"{key} holds nothing"
        if decided is not None:
            assert held == devices_of({"status": {"allocation": decided}}), key
        users = {user["uid"] for user in claim["status"].get("reservedFor") or ()}
        assert uid_of(pod) in users, f"{key} is not reserved for its pod"

    def _device_is_mine(self, key: str, claim: Json) -> None:
        for other, other_claim in self._world.all("ResourceClaim"):
            if other != key and not self._is_news(other):
                assert not devices_of(claim) & devices_of(other_claim), (
                    f"{other} holds it too"
                )

    def _is_news(self, key: str) -> bool:
        """Whether others made or changed a claim since the one who writes planned."""
        made = self._world.made.get(("ResourceClaim", key), 0)
        changed = self._world.damaged.get(key, 0)
        return max(made, changed) > self._world.planned

    def _pods(
        self, uid: GangUID, decision: GangAllocated, written: Written
    ) -> Iterator[tuple[Json, dict[str, Json]]]:
        """Give the pods of a gang that are there, with what was decided for them."""
        submission = next(
            message
            for _, message in self._bus.streams["SUBMIT"]
            if isinstance(message, SubmitGang) and message.uid == uid
        )
        by_uid = {uid_of(pod): pod for _, pod in self._world.all("Pod")}
        names = {
            member.name: [claim.name for claim in member.claims]
            for member in submission.gang.spec.members
        }
        for member in decision.members:
            held = {c.claim: to_builtins(c.allocation) for c in member.claims}
            if not submission.places:
                place = f"{member.member}/{member.index}"
                if _notes(written.after)[INDEX] == place:
                    made = _made(written.after)
                    keys = {f"{NS}/{made[name]}": held[name] for name in held}
                    yield written.after, keys
                continue
            place_ = submission.places[member.member][member.index]
            keys = {
                f"{NS}/{name}": held[claim]
                for name, claim in zip(place_.claims, names[member.member], strict=True)
            }
            for ref in place_.pods:
                pod = by_uid.get(ref.uid)
                if pod is not None and not is_over(pod):
                    yield pod, keys

    # --- messages -------------------------------------------------------------------

    def check_bus(self) -> None:
        """Look at what was said since the last time."""
        stream = self._bus.streams["CONF"]
        for _, message in stream[self._confirmed :]:
            if isinstance(message, GatesOpened):
                self._all_gates_are_open(message.uid)
        self._confirmed = len(stream)
        stream = self._bus.streams["SUBMIT"]
        for number in range(self._submitted, len(stream)):
            self._nobody_gave_it_up(stream[number][1].uid, stream[:number])
        self._submitted = len(stream)
        if not self._rival:
            self.check_askers()

    def _all_gates_are_open(self, uid: GangUID) -> None:
        """GatesOpened is said after the last gate."""
        for pod in self._named(uid):
            waits = is_gated(pod) and not is_over(pod)
            assert not waits or uid in _void(pod), "a gate was not opened"

    def _nobody_gave_it_up(
        self, uid: GangUID, before: list[tuple[int, LifecycleMessage]]
    ) -> None:
        """Pods of a gang that others gave up are left alone while all of them wait."""
        asked = {uid_of(pod) for pod in self._named(uid)}
        for _, message in before:
            commands = self._bus.commands(message.uid)
            if (
                not commands
                or message.uid in self._opened
                or is_by_publisher(commands[0])
            ):
                continue
            pods = self._named(message.uid)
            whole = len(pods) == len(self._uids(message.uid))
            if whole and all(is_gated(pod) and not is_over(pod) for pod in pods):
                assert asked.isdisjoint(map(uid_of, pods)), "asked for in spite of that"

    def check_askers(self) -> None:
        """A pod is asked for by one submission at most that is alive."""
        askers: Counter[str] = Counter()
        for uid in self._alive():
            for pod in self._named(uid):
                if uid not in _void(pod) and not is_over(pod):
                    askers[uid_of(pod)] += 1
        assert not askers or max(askers.values()) == 1, askers

    def _list_asked(self) -> dict[str, set[str]]:
        """List the pods that wait and are asked for, as uids by gang."""
        asked: dict[str, set[str]] = {}
        for pod in (pod for uid in self._alive() for pod in self._named(uid)):
            if is_gated(pod) and not is_over(pod):
                gang = pod["metadata"].get("labels", {}).get(GANG, "")
                asked.setdefault(gang, set()).add(uid_of(pod))
        return asked

    def _named(self, uid: GangUID) -> list[Json]:
        uids = self._uids(uid)
        return [pod for _, pod in self._world.all("Pod") if uid_of(pod) in uids]

    def _uids(self, uid: GangUID) -> set[str]:
        return {
            ref.uid
            for _, message in self._bus.streams["SUBMIT"]
            if isinstance(message, SubmitGang) and message.uid == uid
            for places in message.places.values()
            for place in places
            for ref in place.pods
        }

    def _alive(self) -> Iterator[GangUID]:
        """Name the gangs that still ask for something."""
        over = {
            message.uid
            for stream in self._bus.streams.values()
            for _, message in stream
            if isinstance(message, ENDS)
        }
        for _, message in self._bus.streams["SUBMIT"]:
            if message.uid not in over:
                yield message.uid

    # --- the end --------------------------------------------------------------------

    def check_end(self, publisher: Publisher) -> None:
        """Nothing is left half done, and whoever waits was told why."""
        self.check_askers()
        told = publisher.tell_all()
        reports = (why for why, _ in told.values())
        self._wholeness.check_waiting(reports, self._list_asked())
        holders: Counter[tuple[str, str]] = Counter()
        for key, claim in self._world.all("ResourceClaim"):
            if not key.startswith(f"{NS}/foreign") and key not in self._world.damaged:
                holders.update(devices_of(claim))
        assert not holders or max(holders.values()) == 1, holders
        for key, pod in self._world.all("Pod"):
            if pod["spec"].get("nodeName") or is_over(pod):
                continue
            assert uid_of(pod) in told, f"{key} waits and nobody says why"
            why, decision = told[uid_of(pod)]
            if why.reason == "PlacementLost" and self._has_devices(key, pod):
                continue
            if self._is_refused(pod):
                assert why.reason in ("SchedulerRefused", "PlacementLost"), why
                assert UNFIT in why.message or why.reason == "PlacementLost", why
                continue
            if why.phase != "Decided" or not why.reason:  # held for pods to come
                assert why.phase in WAITS, why
            if why.phase == "Pending":
                assert isinstance(decision, GangPending), f"{key} waits for a decision"
            if is_gated(pod) and not isinstance(decision, GangAllocated):
                self._holds_nothing(key, pod)

    def _is_refused(self, pod: Json) -> bool:
        """Whether kube-scheduler refuses a pod on the node that it is pinned to."""
        node = read_pinned_node(pod["spec"].get("affinity") or {})
        return not is_gated(pod) and node in self._world.unfit

    def check_elsewhere(self) -> None:
        """Every pod runs, on a node that kube-scheduler does not refuse."""
        for key, pod in self._world.all("Pod"):
            node = pod["spec"].get("nodeName")
            assert node, f"{key} does not run"
            assert node not in self._world.unfit, f"{key} on {node}"

    def _has_devices(self, key: str, pod: Json) -> bool:
        """Whether a pod has all devices of ours, though maybe on another node."""
        ours = (name for name in claims_of(key, pod) if f"-{THEIRS}" not in name)
        claims = (self._world.get("ResourceClaim", name) for name in ours)
        return all(claim is not None and devices_of(claim) for claim in claims)

    def _holds_nothing(self, key: str, pod: Json) -> None:
        for name in claims_of(key, pod):
            claim = self._world.get("ResourceClaim", name)
            if claim is None or not devices_of(claim) or name in self._world.damaged:
                continue
            if is_kept(claim):
                continue
            users = {user["uid"] for user in claim["status"].get("reservedFor") or ()}
            assert users - {uid_of(pod)}, f"{name} still holds devices for {key}"

    def check_nothing_left(self, publisher: Publisher) -> None:
        """Once all pods are gone nothing is held, and nothing remembered."""
        for key, claim in self._world.all("ResourceClaim"):
            if key not in self._world.damaged:
                assert not devices_of(claim), f"{key} still holds devices"
        assert len(publisher.records) == 0
        assert list(publisher.view.groups()) == []


def _notes(raw: Json) -> dict[str, str]:
    return dict(raw["metadata"].get("annotations") or {})


def _void(pod: Json) -> list[str]:
    """Name the gangs that a pod was withdrawn from for good."""
    return _notes(pod).get(VOID, "").split()


def _made(pod: Json) -> dict[str, str]:
    statuses = pod["status"].get("resourceClaimStatuses") or ()
    return {status["name"]: status["resourceClaimName"] for status in statuses}

"""A game with the plans: drawn moves in a tiny world, and laws that no move may break.

Moves are pairs of a name and two numbers that choose what they are about, so that any
list of moves is a game. `settle` ends it: nothing more happens, everything is heard,
and everybody does what is theirs to do until nothing is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from contracts.codec import to_builtins
from contracts.ids import GangUID, Namespace
from contracts.messages import CancelGang, ReleaseGang, SubmitGang
from contracts.names import API_VERSION
from tests import builders
from tests.builders.decisions import CLUSTER
from tests.simulation.laws import Laws
from tests.simulation.players import Bus, Solver
from tests.simulation.publisher import Publisher
from tests.simulation.setting import Setting
from tests.simulation.workloads import Workloads
from tests.simulation.world import World, devices_of, is_kept, is_over, uid_of

NS = builders.NAMESPACE
MOST_ROUNDS = 40
PASSES, PASS_S = 12, 31
"""How often time passes in the end, where kube-scheduler refuses pods."""
MOST_PLANS = 400
"""Of one publisher between two times that everybody hears everything."""


class Game:
    """The world, who plays in it, and the laws."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.world = World()
        self.bus = Bus()
        self.solver = Solver(self.world, self.bus, setting.nodes, setting.devices)
        self.workloads = Workloads(self.world, setting)
        self._is_over = False
        """Whether nobody makes pods any more."""
        for number in range(setting.nodes):
            self.unplug(number, 0)
        self.leader = Publisher(self.world, self.bus)
        self.publishers = [self.leader]
        if setting.rival:
            self.publishers.append(Publisher(self.world, self.bus))
        for publisher in self.publishers:
            publisher.informed = setting.rival
        late = setting.rival or setting.late
        self.laws = Laws(
            self.world, self.bus, self.solver, rival=setting.rival, late=late
        )

    def play(self, moves: Sequence[tuple[str, int, int]]) -> None:
        """Make these moves, one after the other."""
        for name, one, two in moves:
            mover = self.workloads if hasattr(self.workloads, name) else self
            getattr(mover, name)(one, two)
            self.laws.check_bus()

    # --- others ---------------------------------------------------------------------

    def clear(self, one: int, _two: int) -> None:
        """Let a person free a claim."""
        held = [key for key, c in self.world.all("ResourceClaim") if devices_of(c)]
        if held:
            status = {"allocation": None, "reservedFor": None}
            self.world.damage(held[one % len(held)], status)

    def discard(self, one: int, _two: int) -> None:
        """Let a person delete a claim."""
        claims = [key for key, _ in self.world.all("ResourceClaim")]
        if claims:
            self.world.damage(claims[one % len(claims)], None)

    def allocate(self, one: int, two: int) -> None:
        """Let somebody else allocate a free claim, or a claim of its own."""
        node = f"node-{two % self.setting.nodes}"
        device = f"gpu-{one % self.setting.devices}"
        held = to_builtins(
            builders.allocation(builders.result(device, pool=node), node=node)
        )
        free = [
            key
            for key, claim in self.world.all("ResourceClaim")
            if not devices_of(claim) and not claim["metadata"].get("deletionTimestamp")
        ]
        if free and two % 3 == 0:
            self.world.damage(free[one % len(free)], {"allocation": held})
            return
        name = f"foreign-{self.workloads.count()}"
        self.workloads.make_claim(name, held=held)
        self.world.damaged[f"{NS}/{name}"] = len(self.world.changes)

    def spoil(self, one: int, two: int) -> None:
        """Let kube-scheduler refuse a node from now on, or no more; it may show."""
        name = f"node-{one % self.setting.nodes}"
        self.world.unfit ^= {name}
        node = self.world.get("Node", name)
        if node is not None and two % 2:
            labels = {"state": f"{len(self.world.changes)}"}
            self.world.change("Node", name, {"metadata": {"labels": labels}})

    def preempt(self, one: int, _two: int) -> None:
        """Let kube-scheduler take the place of a pod that is on its node."""
        bound = [
            key
            for key, pod in self.world.all("Pod")
            if pod["spec"].get("nodeName") and not is_over(pod)
        ]
        if bound:
            self.world.preempt_pod(bound[one % len(bound)])

    def pass_time(self, one: int, _two: int) -> None:
        """Let time pass: up to eleven minutes."""
        self.world.passed_s += 1 + 60 * one

    def unplug(self, one: int, _two: int) -> None:
        """Let a node go, or come back."""
        name = f"node-{one % self.setting.nodes}"
        if self.world.get("Node", name) is not None:
            self.world.remove("Node", name)
            return
        metadata = {"name": name, "uid": f"node-{self.workloads.count()}"}
        self.world.put("Node", name, {"apiVersion": "v1", "metadata": metadata})

    def cancel(self, one: int, two: int) -> None:
        """Let somebody give a gang up."""
        submitted = [message for _, message in self.bus.streams["SUBMIT"]]
        if submitted:
            uid = submitted[one % len(submitted)].uid
            kind = ReleaseGang if two % 3 == 0 else CancelGang
            self.bus.publish(kind(cluster=CLUSTER, namespace=Namespace(NS), uid=uid))

    def gang_object(self, one: int, two: int) -> None:
        """Make, change or delete a Gang object."""
        names = sorted({slot.gang for slot in self.setting.slots} - {""})
        if not names:
            return
        name = names[one % len(names)]
        key = f"{NS}/{name}"
        if self.world.get("Gang", key) is not None and two % 3 == 0:
            self.world.remove("Gang", key)
            return
        slots = [slot for slot in self.setting.slots if slot.gang == name]
        member = builders.member(
            *(
                builders.member_claim(
                    name=f"own-{index}", template=f"own-{index}-template"
                )
                for index in range(slots[0].own)
            ),
            count=self.setting.size_of(name) + (two % 5 == 1),
        )
        there = self.world.get("Gang", key)
        uid = f"gang-{self.workloads.count()}" if there is None else uid_of(there)
        recovery = "Recreate" if one % 4 == 3 else "Report"
        gang = builders.gang(
            member, name=name, uid=uid, hold=two % 5 == 2, recovery=recovery
        )
        raw = to_builtins(gang) | {"apiVersion": API_VERSION}
        self.world.put("Gang", key, raw)

    def submit_late(self, one: int, _two: int) -> None:
        """Let a platform submit a gang before its pods."""
        names = sorted({slot.gang for slot in self.setting.slots} - {""})
        if not names:
            return
        name = names[one % len(names)]
        slots = [slot for slot in self.setting.slots if slot.gang == name]
        claims = [
            builders.member_claim(builders.request(), name=f"own-{index}")
            for index in range(slots[0].own)
        ]
        member = builders.member(*claims, name="pod", count=self.setting.size_of(name))
        uid = f"late-{self.workloads.count()}"
        gang = builders.gang(member, name=name, uid=uid)
        message = SubmitGang(cluster=CLUSTER, uid=GangUID(uid), gang=gang)
        self.bus.publish(message)

    def reject(self, one: int, _two: int) -> None:
        """Let the solver call a gang wrong."""
        self.solver.reject(one)

    def refuse(self, one: int, two: int) -> None:
        """Let the API server refuse a write of a decision."""
        self._publisher(two).refusing = 1 + one % 2

    # --- the players ----------------------------------------------------------------

    def solve(self, _one: int, _two: int) -> None:
        """Let the solver say what comes next."""
        self.solver.step()

    def control(self, _one: int, _two: int) -> None:
        """Let the controller manager do its part."""
        self.world.control()

    def schedule(self, _one: int, _two: int) -> None:
        """Let kube-scheduler do its part."""
        self.world.schedule()

    def hear_api(self, one: int, two: int) -> None:
        """Let a publisher hear of some changes."""
        self._publisher(two).hear_api(1 + one)

    def hear_bus(self, one: int, two: int) -> None:
        """Let a publisher read some messages of one stream."""
        stream = ("SUBMIT", "CMD", "DEC", "CONF")[one % 4]
        self._publisher(two).hear_bus(stream, 1 + one // 4)

    def hear(self, _one: int, two: int) -> None:
        """Let a publisher hear everything."""
        self._publisher(two).hear()

    def act(self, _one: int, two: int) -> None:
        """Let a publisher plan for one group and carry all of it out."""
        self._publisher(two).act()

    def advance(self, one: int, two: int) -> None:
        """Let a publisher hear everything and act a few times, or the solver."""
        publisher = self._publisher(two)
        publisher.hear()
        for _ in range(1 + one % 4):
            publisher.act()
        if one % 3:
            self.solver.step()

    def plan(self, _one: int, two: int) -> None:
        """Let a publisher plan for one group."""
        self._publisher(two).plan()

    def carry_out(self, one: int, two: int) -> None:
        """Let a publisher do one thing that it planned."""
        publisher = self._publisher(two)
        groups = sorted(publisher.rounds)
        if groups:
            publisher.carry_out(groups[one % len(groups)])

    def restart(self, _one: int, two: int) -> None:
        """Let a publisher begin anew."""
        self._publisher(two).restart()

    def _publisher(self, number: int) -> Publisher:
        return self.publishers[number % len(self.publishers)]

    # --- the end --------------------------------------------------------------------

    def settle(self) -> None:
        """Let everybody do what is left to do; it must come to an end."""
        for publisher in self.publishers[1:]:
            for group in sorted(publisher.rounds):
                while group in publisher.rounds:
                    publisher.carry_out(group)
        self.leader.refusing = 0
        passes = PASSES if self.world.unfit else 0
        for _ in range(MOST_ROUNDS * (1 + passes)):
            before = len(self.world.changes), self._said()
            if self.setting.recovery and not self._is_over:
                for number in range(len(self.setting.slots)):
                    self.workloads.create(number, 0)
            self.workloads.generate_all()
            self._exhaust()
            while self.solver.step():
                continue
            self.world.bury_pods()
            self.world.control()
            self.world.schedule()
            self.laws.check_bus()
            if (len(self.world.changes), self._said()) == before:
                if not passes:
                    return
                passes -= 1
                self.world.passed_s += PASS_S
        raise AssertionError("it does not settle")

    def _exhaust(self) -> None:
        self.leader.hear()
        for _ in range(MOST_PLANS):
            if self.leader.is_idle:
                return
            for group in sorted(self.leader.rounds):
                self.leader.carry_out(group)
            self.leader.act()
        raise AssertionError("the plans do not come to an end")

    def _said(self) -> int:
        return sum(map(len, self.bus.streams.values()))

    def tear_down(self) -> None:
        """Delete all pods and Gang objects, and what others made."""
        self._is_over = True
        for key, _ in list(self.world.all("Pod")):
            self.world.delete_pod(key)
        for key, _ in list(self.world.all("Gang")):
            self.world.remove("Gang", key)
        for _, message in self.bus.streams["SUBMIT"]:
            if isinstance(message, SubmitGang) and not message.places:
                self.bus.publish(
                    CancelGang(
                        cluster=CLUSTER, namespace=Namespace(NS), uid=message.uid
                    )
                )
        for key, _ in list(self.world.all("ResourceClaim")):
            if key.startswith(f"{NS}/foreign"):
                self.world.remove("ResourceClaim", key)
        for key, claim in list(self.world.all("ResourceClaim")):
            if is_kept(claim):
                self.world.delete_claim(key)
        self.settle()

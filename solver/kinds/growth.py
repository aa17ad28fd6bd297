"""What pods of a gang that have their place leave to those that are asked for.

Rules hold over both together. Where the pods that have a place do not keep one by
themselves, or where their devices are not known any more, none is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from msgspec import structs

from contracts.allocation import Reason, Rule
from contracts.device import Device
from contracts.gang_rules import GangConstraint, GangTopology
from contracts.ids import DeviceID
from solver.devices.published import find_published
from solver.errors import RefusedError
from solver.kinds.topology import MEMBER, POD, PREFERRED, attribute_of, names_path
from solver.problem.attributes import (
    Element,
    elements_of,
    find_derived,
)
from solver.problem.gang_refusals import not_modelled
from solver.problem.gangs import GangPart, SubrequestPart
from solver.problem.growth.standing import (
    HeldPart,
    StandingPart,
    StandingPod,
    StandingRules,
    StandingSet,
)
from solver.problem.problem import Problem
from solver.problem.sharing import find_shared_claims
from solver.snapshot.parts import NodePart, PartValue, PoolPart, node_key, pool_key


def resolve_standing(problem: Problem) -> Problem:
    """Resolve what pods that have a place leave to the others of their gangs."""
    if not any(gang.standing for gang in problem.gangs):
        return problem
    known = _Known(problem)
    return problem.with_gangs(
        tuple(_resolve_gang(gang, known) for gang in problem.gangs)
    )


class _Known:
    """What the Problem knows of nodes and devices, held or not."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._page_by_owner = {
            owner: page for page in problem.pages for owner in page.nodes
        }

    def label_of(self, pod: StandingPart, key: str) -> str | None:
        node = self._get_part(pod.node, node_key(pod.node))
        return node.labels.get(key) if isinstance(node, NodePart) else None

    def published(
        self, pod: StandingPart, held: HeldPart, name: str, field: str
    ) -> set[Element]:
        """List what a driver publishes of a device under a name.

        Raises:
            RefusedError: the device is unknown; `field` is the rule that asks.
        """
        device = self._find_device(pod, held.device, field)
        found = find_published(device, held.device.driver, name)
        return set(elements_of(found, self._problem.parameters.features))

    def compared(
        self, pod: StandingPart, held: HeldPart, name: str, field: str
    ) -> set[Element]:
        """List what constraints compare of a device.

        Raises:
            RefusedError: the device is unknown; `field` is the rule that asks.
        """
        device = self._find_device(pod, held.device, field)
        request = SubrequestPart(derived_attributes=held.derived_attributes)
        table = self._problem.selectors
        derived = find_derived(request, name, device, held.device.driver, table)
        if derived is None:
            return self.published(pod, held, name, field)
        features = self._problem.parameters.features
        return set(elements_of(derived.attribute, features))

    def _find_device(self, pod: StandingPart, name: DeviceID, field: str) -> Device:
        key = pool_key(name.driver, name.pool)
        for owner in (pod.node, ""):
            pool = self._get_part(owner, key)
            if isinstance(pool, PoolPart):
                for device in reversed(pool.devices):
                    if device.name == name.device:
                        return device
        raise RefusedError(
            Reason(
                rule=Rule.NOT_MODELLED,
                subject=str(name),
                field=field,
                message=f"{pod.member}/{pod.index} has it, and it is not known now",
            ),
            rejected=False,
        )

    def _get_part(self, owner: str, key: str) -> PartValue | None:
        page = self._page_by_owner.get(owner)
        part = None if page is None else page.get(owner, key)
        return None if part is None else part.value


def _resolve_gang(gang: GangPart, known: _Known) -> GangPart:
    if gang.refused or not gang.standing:
        return gang
    try:
        if find_shared_claims(gang.members):
            field = "a claim that pods share beside pods that have a place"
            raise not_modelled(gang.name, field)
        for number, rule in enumerate(gang.topology):
            if rule.is_even:
                field = f"spec.topology[{number}].groupSize"
                raise not_modelled(gang.name, f"{field} beside pods that have a place")
        sets = tuple(_list_sets(gang, known))
        pods = tuple(
            StandingPod(
                pod.member,
                pod.index,
                pod.pods,
                tuple(
                    _find_domain(rule, pod, known, f"spec.topology[{number}]")
                    for number, rule in enumerate(gang.topology)
                ),
            )
            for pod in gang.standing
        )
        for number, rule in enumerate(gang.topology):
            _check_topology(number, rule, pods)
    except RefusedError as error:
        return structs.replace(gang, refused=(error.reason,), rejected=False)
    return structs.replace(gang, standing_rules=StandingRules(pods, sets))


# --- constraints ----------------------------------------------------------------------


def _list_sets(gang: GangPart, known: _Known) -> Iterator[StandingSet]:
    for number, constraint in enumerate(gang.constraints):
        if constraint.scope == POD:
            continue
        field = f"spec.constraints[{number}]"
        by_member: dict[str, list[set[Element]]] = {}
        for pod in gang.standing:
            member = pod.member if constraint.scope == MEMBER else ""
            for held in pod.devices:
                if names_path(constraint, (pod.path_of(held),)):
                    name = attribute_of(constraint)
                    values = known.compared(pod, held, name, field)
                    by_member.setdefault(member, []).append(values)
        for member, listed in by_member.items():
            _check_set(number, constraint, listed)
            values_of = tuple(tuple(sorted(v, key=repr)) for v in listed)
            yield StandingSet(number, member, values_of)


def _check_set(
    number: int, constraint: GangConstraint, listed: Sequence[set[Element]]
) -> None:
    common = set.intersection(*listed)
    if constraint.match_attribute is not None:
        is_kept = bool(common)
    else:
        is_kept = all(listed) and len(set().union(*listed)) == sum(map(len, listed))
    if not is_kept:
        raise _refuse_broken(Rule.CONSTRAINT, f"spec.constraints[{number}]")


# --- topology -------------------------------------------------------------------------


def _find_domain(
    rule: GangTopology, pod: StandingPart, known: _Known, field: str
) -> Hashable:
    if not rule.is_about(pod.member):
        return None
    if rule.attribute is None:
        return known.label_of(pod, rule.key)
    published = (
        known.published(pod, held, rule.attribute, field) for held in pod.devices
    )
    having = [values for values in published if values]
    common = set.intersection(*having) if having else set()
    return common.pop() if len(common) == 1 else None


def _check_topology(
    number: int, rule: GangTopology, pods: Sequence[StandingPod]
) -> None:
    if rule.mode == PREFERRED:
        return
    named = [pod for pod in pods if rule.is_about(pod.member)]
    groups: dict[Hashable, set[Hashable]] = {}
    counts: Counter[Hashable] = Counter()
    for pod in named:
        domain = pod.domains[number]
        if rule.size is not None:
            group = (pod.member, pod.index // rule.size)
            groups.setdefault(group, set()).add(domain)
        elif rule.max_per_domain is None:
            groups.setdefault("", set()).add(domain)
        counts[domain] += pod.pods
    is_kept = None not in counts and all(len(found) == 1 for found in groups.values())
    most = rule.max_per_domain
    if not is_kept or (most is not None and max(counts.values(), default=0) > most):
        raise _refuse_broken(Rule.GANG_TOPOLOGY, f"spec.topology[{number}]")


def _refuse_broken(rule: Rule, field: str) -> RefusedError:
    message = "its pods that have a place do not keep it"
    return RefusedError(Reason(rule=rule, field=field, message=message), rejected=False)

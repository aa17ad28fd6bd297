"""Which domain each part goes to, beside pods that may be anywhere: by node patterns.

Shares say how much of a domain a part takes, not what it leaves of nodes: pods of six
devices leave two of each node of eight, which are lost unless pods of one or two are
there as well. Here every node takes a pattern, so what is left is known. Some domains
at a time are packed by CP-SAT: first each has its part of all that is asked for, then
some are packed anew together with what has no place yet (large neighborhood search).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from solver.engines import cp_model, cpsat
from solver.engines.cpsat import Term, total
from solver.engines.pseudo_random import shuffled

Pattern = tuple[tuple[int, int], ...]
"""(member kind, pods) that one node holds together, ascending."""
MOST_PATTERNS = 300
"""Of sites whose domains are packed at once."""
MOST_KINDS = 24
"""Kinds of parts without a place that are packed anew with them."""
PATIENCE = 16
"""Rounds that lead to nothing more, after which the rest is given up."""
ROUND_WORK = 0.05
"""Deterministic time of one round, at most."""
MODEL_WORK = 0.005
"""And at least: small models take longer to make than to solve."""


class AlikeNodes(Struct, frozen=True):
    """Nodes of one domain that may take the same patterns."""

    domain: int
    """-1: parts cannot be there."""
    nodes: int
    patterns: tuple[Pattern, ...]


class PartKind(Struct, frozen=True):
    """Parts that cannot be told apart, each for one domain."""

    count: int
    needs: tuple[tuple[int, int], ...]
    """(member kind, pods)."""


class Dealt(Struct, frozen=True):
    """What came of a packing."""

    parts: dict[int, Counter[int]]
    """By domain: kinds of parts."""
    patterns: list[Counter[Pattern]]
    """By site: how many of its nodes take each."""


class JointPacking:
    """One packing; `run` it once."""

    def __init__(
        self,
        sites: Sequence[AlikeNodes],
        kinds: Sequence[PartKind],
        loose: Mapping[int, int],
        worth: Sequence[int],
        *,
        work_limit: float,
        seed: int,
    ) -> None:
        """`loose`: pods by member kind that may be anywhere.

        `worth`: of a pod, by member kind. `work_limit`: what no round begins beyond;
        domains that are not packed by then stay empty.
        """
        self._sites = sites
        self._kinds = kinds
        self._worth = worth
        self._work_limit = work_limit
        self._seed = seed
        self._sites_of: dict[int, list[int]] = {}
        for number, site in enumerate(sites):
            self._sites_of.setdefault(site.domain, []).append(number)
        self._parts = {domain: Counter[int]() for domain in self._sites_of}
        self._loose = {domain: Counter[int]() for domain in self._sites_of}
        """By domain: pods that may be anywhere."""
        self._patterns = [Counter[Pattern]() for _ in sites]
        self._missing = Counter({k: kind.count for k, kind in enumerate(kinds)})
        self._missing_loose = Counter(loose)
        self._most_of = {
            patterns: max((self._worth_by(p) for p in patterns), default=0)
            for patterns in {site.patterns for site in sites}
        }
        """What a node holds at most."""
        self.work = 0.0

    def run(self) -> Dealt:
        """Return what each domain has, and the patterns of its nodes."""
        for domains, parts, loose in self._deal(list(self._group_domains())):
            if self.work >= self._work_limit:
                break
            self._pack(domains, parts, loose)
        failures = number = 0
        while failures < PATIENCE and self.work < self._work_limit:
            before = self._missed()
            if not before:
                break
            number += 1
            kinds = shuffled(sorted(+self._missing), number)[:MOST_KINDS]
            missing = Counter({kind: self._missing[kind] for kind in kinds})
            self._pack(self._choose_domains(number), missing, self._missing_loose)
            failures = 0 if self._missed() < before else failures + 1
        return Dealt(self._parts, self._patterns)

    def _missed(self) -> int:
        """Value what has no place."""
        return self._value(self._missing, self._missing_loose)

    def _worth_of(self, kind: int) -> int:
        return self._worth_by(self._kinds[kind].needs)

    def _worth_by(self, needs: Iterable[tuple[int, int]]) -> int:
        return sum(self._worth[member] * pods for member, pods in needs)

    def _group_domains(self) -> Iterator[list[int]]:
        """Deal all domains into groups of so many patterns."""
        group, patterns = list[int](), 0
        for domain in shuffled(sorted(self._sites_of), self._seed):
            own = self._count_patterns(domain)
            if group and patterns + own > MOST_PATTERNS:
                yield group
                group, patterns = [], 0
            group.append(domain)
            patterns += own
        if group:
            yield group

    def _choose_domains(self, number: int) -> list[int]:
        """Choose domains with something idle, for a half, and others."""
        dealt = shuffled(sorted(self._sites_of), self._seed + number)
        idle = [domain for domain in dealt if self._is_idle(domain)]
        chosen, patterns = dict[int, None](), 0
        for most, domains in ((MOST_PATTERNS // 2, idle), (MOST_PATTERNS, dealt)):
            for domain in domains:
                own = self._count_patterns(domain)
                if domain not in chosen and (not chosen or patterns + own <= most):
                    chosen[domain] = None
                    patterns += own
        return list(chosen)

    def _count_patterns(self, domain: int) -> int:
        return sum(len(self._sites[s].patterns) for s in self._sites_of[domain])

    def _is_idle(self, domain: int) -> bool:
        """Whether nodes of a domain could hold more than is in it."""
        full = sum(
            self._sites[s].nodes * self._most_of[self._sites[s].patterns]
            for s in self._sites_of[domain]
        )
        return self._value_of(domain) < full

    def _value_of(self, domain: int) -> int:
        """Value what is in a domain."""
        return self._value(self._parts[domain], self._loose[domain])

    def _value(self, parts: Counter[int], loose: Counter[int]) -> int:
        """Value parts by kind, and pods by member kind."""
        of_parts = sum(self._worth_of(kind) * count for kind, count in parts.items())
        return of_parts + self._worth_by(loose.items())

    def _deal(
        self, groups: list[list[int]]
    ) -> Iterator[tuple[list[int], Counter[int], Counter[int]]]:
        """Give each group its part of every sort of pod, by its nodes."""
        sizes = [
            sum(self._sites[s].nodes for d in group for s in self._sites_of[d])
            for group in groups
        ]
        everything, last = sum(sizes), 0
        # Parts stand in a row by what they ask for most; each is where its middle is.
        places = list[tuple[float, int]]()
        by_member: dict[int, list[int]] = {}
        for kind in shuffled(range(len(self._kinds)), self._seed):
            main = max(self._kinds[kind].needs, key=lambda need: need[1])[0]
            by_member.setdefault(main, []).extend([kind] * self._kinds[kind].count)
        for _, row in sorted(by_member.items()):
            length, start = sum(map(self._worth_of, row)) or 1, 0
            for kind in row:
                own = self._worth_of(kind)
                places.append(((start + own / 2) / length, kind))
                start += own
        asked = self._missing_loose.copy()
        for group, size in zip(groups, sizes, strict=True):
            until = last + size
            yield (
                group,
                Counter(
                    kind for place, kind in places if last <= place * everything < until
                ),
                Counter(
                    {
                        m: pods * until // everything - pods * last // everything
                        for m, pods in asked.items()
                    }
                ),
            )
            last = until

    def _pack(
        self, domains: list[int], parts: Counter[int], loose: Counter[int]
    ) -> None:
        """Decide anew what is in some domains, with more parts and pods beside."""
        model = _GroupModel(self._kinds, [(d, self._list_sites(d)) for d in domains])
        kinds = sum((self._parts[d] for d in domains), +parts)
        pods = sum((self._loose[d] for d in domains), +loose)
        model.state(kinds, pods, self._worth)
        model.hint(self._parts, self._loose, self._patterns)
        outcome = cpsat.solve(
            model.model, work_limit=ROUND_WORK, seed=self._seed, feasibility=False
        )
        self.work += max(outcome.work, MODEL_WORK)
        if not isinstance(outcome, cpsat.Solved):
            return
        before = sum(map(self._value_of, domains))
        if outcome.value_reached < before:
            return
        for domain in domains:
            for counts, missing, found in (
                (self._parts, self._missing, model.parts),
                (self._loose, self._missing_loose, model.loose),
            ):
                own = Counter(
                    {
                        item: outcome.value(variable)
                        for (item, where), variable in found.items()
                        if where == domain
                    }
                )
                missing.update(counts[domain])
                missing.subtract(own)
                counts[domain] = own
            for site in self._sites_of[domain]:
                self._patterns[site] = Counter(
                    {
                        pattern: outcome.value(variable)
                        for (where, pattern), variable in model.patterns.items()
                        if where == site
                    }
                )

    def _list_sites(self, domain: int) -> list[tuple[int, AlikeNodes]]:
        return [(number, self._sites[number]) for number in self._sites_of[domain]]


class _GroupModel:
    """Some domains, and what may be in them."""

    def __init__(
        self,
        kinds: Sequence[PartKind],
        domains: Sequence[tuple[int, Sequence[tuple[int, AlikeNodes]]]],
    ) -> None:
        self._kinds = kinds
        self._domains = domains
        self.model = cp_model.CpModel()
        self.patterns: dict[tuple[int, Pattern], cp_model.IntVar] = {}
        self.parts: dict[tuple[int, int], cp_model.IntVar] = {}
        self.loose: dict[tuple[int, int], cp_model.IntVar] = {}

    def state(
        self, kinds: Counter[int], pods: Counter[int], worth: Sequence[int]
    ) -> None:
        """Each node takes one pattern, and who is in a domain has a place by them."""
        model = self.model
        for domain, sites in self._domains:
            supply = dict[int, list[Term]]()
            for number, site in sites:
                chosen = []
                for pattern in site.patterns:
                    variable = model.new_int_var(0, site.nodes, "")
                    self.patterns[number, pattern] = variable
                    chosen.append((variable, 1))
                    for member, each in pattern:
                        supply.setdefault(member, []).append((variable, each))
                model.add(total(chosen) <= site.nodes)
            self._state_domain(domain, supply, kinds, pods)
        gains = list[Term]()
        for found, most in ((self.parts, kinds), (self.loose, pods)):
            by_item = dict[int, list[Term]]()
            for (item, _), variable in found.items():
                by_item.setdefault(item, []).append((variable, 1))
            for item, terms in by_item.items():
                model.add(total(terms) <= most[item])
        for (kind, _), variable in self.parts.items():
            gain = sum(worth[m] * n for m, n in self._kinds[kind].needs)
            gains.append((variable, gain))
        gains += [(v, worth[member]) for (member, _), v in self.loose.items()]
        model.maximize(total(gains))

    def _state_domain(
        self,
        domain: int,
        supply: Mapping[int, list[Term]],
        kinds: Counter[int],
        pods: Counter[int],
    ) -> None:
        model, taken = self.model, dict[int, list[Term]]()
        for kind, most in sorted(kinds.items()):
            needs = self._kinds[kind].needs
            if domain < 0 or not most or any(m not in supply for m, _ in needs):
                continue
            variable = self.parts[kind, domain] = model.new_int_var(0, most, "")
            for member, count in needs:
                taken.setdefault(member, []).append((variable, count))
        for member, most in sorted(pods.items()):
            if most and member in supply:
                variable = self.loose[member, domain] = model.new_int_var(0, most, "")
                taken.setdefault(member, []).append((variable, 1))
        for member, terms in taken.items():
            model.add(total(terms) <= total(supply[member]))

    def hint(
        self,
        parts: Mapping[int, Counter[int]],
        loose: Mapping[int, Counter[int]],
        patterns: Sequence[Counter[Pattern]],
    ) -> None:
        """Begin with what is there."""
        for (kind, domain), variable in self.parts.items():
            self.model.add_hint(variable, parts[domain][kind])
        for (member, domain), variable in self.loose.items():
            self.model.add_hint(variable, loose[domain][member])
        for (site, pattern), variable in self.patterns.items():
            self.model.add_hint(variable, patterns[site][pattern])

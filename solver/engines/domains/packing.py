"""Which domain each part goes to, so that as much as possible is in: by shares alone.

Of a domain a part takes the share that its pods are of all that it has room for. First
each part, the largest first, goes to the fullest domain that takes it. Then a few
domains at a time are packed anew by CP-SAT together with what has no place yet (large
neighborhood search).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from solver.engines import cp_model, cpsat
from solver.engines.cpsat import Term, total
from solver.engines.pseudo_random import shuffled

WHOLE = 1 << 40
"""The share that is all of a domain."""
DOMAINS = 12
"""That are packed anew at once."""
MOST_ROUNDS = 300
PATIENCE = 30
"""Rounds that lead to nothing more, after which the rest is given up."""
ROUND_WORK = 0.05
"""Deterministic time of one round."""


class ItemKind(Struct, frozen=True):
    """Parts that cannot be told apart."""

    count: int
    worth: int
    """Of each."""
    shares: tuple[int, ...]
    """Of each domain what it takes, rounded down; more than `WHOLE`: it cannot."""


class Packing:
    """One packing; `run` it once."""

    def __init__(
        self, kinds: Sequence[ItemKind], *, work_limit: float, seed: int
    ) -> None:
        self._kinds = kinds
        self._work_limit = work_limit
        self._seed = seed
        domains = len(kinds[0].shares) if kinds else 0
        self._inside = [Counter[int]() for _ in range(domains)]
        """By domain: kinds."""
        self._left = [WHOLE] * domains
        self._missing = Counter({k: kind.count for k, kind in enumerate(kinds)})
        self.work = 0.0

    def run(self) -> list[Counter[int]]:
        """Return by domain how many of each kind are in it."""
        if not self._inside:
            return []
        self._fill()
        failures = 0
        for number in range(MOST_ROUNDS):
            missing = self._missing.total()
            if not missing or failures == PATIENCE or self.work >= self._work_limit:
                break
            gained = self._pack_anew(self._choose_domains(number))
            failures = 0 if gained else failures + 1
        return self._inside

    def _fill(self) -> None:
        """Put each part, the largest first, into the fullest domain that takes it."""
        largest = sorted(self._missing, key=lambda k: (-min(self._kinds[k].shares), k))
        for kind in largest:
            shares = self._kinds[kind].shares
            while self._missing[kind]:
                fits = [
                    (left - share, domain)
                    for domain, (left, share) in enumerate(
                        zip(self._left, shares, strict=True)
                    )
                    if share <= left
                ]
                if not fits:
                    break
                self._move(kind, min(fits)[1], 1)

    def _move(self, kind: int, domain: int, count: int) -> None:
        self._inside[domain][kind] += count
        self._left[domain] -= count * self._kinds[kind].shares[domain]
        self._missing[kind] -= count

    def _choose_domains(self, number: int) -> list[int]:
        """Choose domains at random: most of them have something left."""
        dealt = shuffled(range(len(self._inside)), self._seed + number)
        least = min(
            share
            for kind, count in self._missing.items()
            if count
            for share in self._kinds[kind].shares
        )
        # What is left of all of these together must be worth the trouble.
        unfilled = [domain for domain in dealt if self._left[domain] * DOMAINS >= least]
        chosen = unfilled[: DOMAINS * 3 // 4]
        others = [domain for domain in dealt if domain not in chosen]
        return chosen + others[: DOMAINS - len(chosen)]

    def _pack_anew(self, domains: list[int]) -> bool:
        """Decide anew what is in some domains; whether more is in all together."""
        model, counts = cp_model.CpModel(), dict[tuple[int, int], cp_model.IntVar]()
        available = sum((self._inside[domain] for domain in domains), +self._missing)
        for kind, most in sorted(available.items()):
            for domain in domains:
                share = self._kinds[kind].shares[domain]
                fitting = min(most, WHOLE // share if share else most)
                if fitting:
                    name = f"count[{kind},{domain}]"
                    count = model.new_int_var(0, fitting, name)
                    model.add_hint(count, self._inside[domain][kind])
                    counts[kind, domain] = count
            terms = [(c, 1) for (k, _), c in counts.items() if k == kind]
            model.add(total(terms) <= most)
        for domain in domains:
            taken: list[Term] = [
                (count, self._kinds[kind].shares[domain])
                for (kind, where), count in counts.items()
                if where == domain
            ]
            model.add(total(taken) <= WHOLE)
        worth = total([(c, self._kinds[k].worth) for (k, _), c in counts.items()])
        model.maximize(worth)
        outcome = cpsat.solve(
            model, work_limit=ROUND_WORK, seed=self._seed, feasibility=False
        )
        self.work += outcome.work
        if not isinstance(outcome, cpsat.Solved):
            return False
        before = sum(
            self._kinds[kind].worth * count
            for domain in domains
            for kind, count in self._inside[domain].items()
        )
        if outcome.value_reached < before:
            return False
        for (kind, domain), variable in counts.items():
            change = outcome.value(variable) - self._inside[domain][kind]
            self._move(kind, domain, change)
        return outcome.value_reached > before

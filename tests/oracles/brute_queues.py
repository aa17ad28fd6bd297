"""In which order gangs get quota, written from Kueue's documents.

Everything is added up anew for each question: no amounts are kept. Shares no code with
what the solver counts by. From the concepts "ClusterQueue", "Cohort" and "Fair sharing"
and from KEP-79 and KEP-1714:

- A node's *subtree quota* is its own nominal quota and what its children lend; with a
  lending limit a child keeps the rest for itself.
- What a child uses beyond what it keeps counts for its cohort. Nobody may use more than
  its subtree quota and its borrowing limit; a root nothing beyond its subtree quota.
- The share of a node is what it uses beyond its subtree quota, by resource over all
  flavors, as a part of what its cohort could get; the largest part counts, by weight.
- Cohort by cohort, from the leaves up, the child wins whose share with its gang is the
  smallest; those that borrow nothing of what the gang asks for come first.
"""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

Where = tuple[str, str]
Amounts = dict[Where, int]
Key = tuple[bool, bool, Fraction, int]


class Node(Struct):
    """A ClusterQueue or a Cohort, as drawn."""

    name: str
    parent: str = ""
    quotas: dict[Where, tuple[int, int | None, int | None]] = {}
    weight: Fraction = Fraction(1)
    is_cohort: bool = False
    try_next: bool = False
    """Another flavor comes before borrowing."""


class Wanted(Struct):
    """A gang: the older has the smaller age."""

    age: int
    queue: str
    priority: int
    amounts: dict[str, int]


class BruteQueues:
    """All nodes, and who was let in."""

    def __init__(self, nodes: list[Node], flavors: list[str]) -> None:
        self.nodes = {(node.is_cohort, node.name): node for node in nodes}
        for node in nodes:
            self._imply(node.parent)
        self.flavors = flavors
        self.used: dict[str, Amounts] = {}

    def _imply(self, name: str) -> None:
        if name and (True, name) not in self.nodes:
            self.nodes[True, name] = Node(name, is_cohort=True)

    def order(self, gangs: list[Wanted]) -> list[tuple[int, str]]:
        """List the gangs as they are looked at, each with the flavor that it gets.

        Without a flavor it is refused, after all of its priority that fit.
        """
        left, found = list(gangs), []
        while left:
            top = max(gang.priority for gang in left)
            heads: dict[str, Wanted] = {}
            for gang in sorted(left, key=lambda each: each.age):
                if gang.priority == top:
                    heads.setdefault(gang.queue, gang)
            winner = self._best(list(heads.values()))
            flavor = self.fit(winner)
            if flavor:
                self._add(winner, flavor)
            found.append((winner.age, flavor))
            left.remove(winner)
        return found

    def fit(self, gang: Wanted) -> str:
        """Name the first flavor with enough quota; empty: there is none."""
        node, borrowing = self.nodes[False, gang.queue], ""
        for flavor in self.flavors:
            asked = {(flavor, r): a for r, a in gang.amounts.items()}
            if any(where not in node.quotas for where in asked):
                continue
            if not self._is_kept(node, asked):
                continue
            borrows = any(
                self._usage(node, where) + amount > node.quotas[where][0]
                for where, amount in asked.items()
            )
            if not borrows or not node.try_next:
                return flavor
            borrowing = borrowing or flavor
        return borrowing

    def _add(self, gang: Wanted, flavor: str) -> None:
        mine = self.used.setdefault(gang.queue, {})
        for resource, amount in gang.amounts.items():
            where = (flavor, resource)
            mine[where] = mine.get(where, 0) + amount

    # --- amounts ---------------------------------------------------------------------

    def _children(self, node: Node) -> list[Node]:
        if not node.is_cohort:
            return []
        return [each for each in self.nodes.values() if each.parent == node.name]

    def _subtree(self, node: Node, where: Where) -> int:
        own = node.quotas.get(where, (0, None, None))[0]
        lent = (
            self._subtree(each, where) - self._kept(each, where)
            for each in self._children(node)
        )
        return own + sum(lent)

    def _kept(self, node: Node, where: Where) -> int:
        limit = node.quotas.get(where, (0, None, None))[2]
        return 0 if limit is None else max(0, self._subtree(node, where) - limit)

    def _usage(self, node: Node, where: Where) -> int:
        if not node.is_cohort:
            return self.used.get(node.name, {}).get(where, 0)
        return sum(
            max(0, self._usage(each, where) - self._kept(each, where))
            for each in self._children(node)
        )

    def _path(self, node: Node) -> list[Node]:
        path = [node]
        while path[-1].parent:
            path.append(self.nodes[True, path[-1].parent])
        return path

    def _is_kept(self, queue: Node, asked: Amounts) -> bool:
        """True if no limit on the way to the root is exceeded by it."""
        with_it = self._with(queue, asked)
        for node in self._path(queue):
            for where in asked:
                most = self._subtree(node, where)
                limit = node.quotas.get(where, (0, None, None))[1]
                if node.parent:
                    if limit is None:
                        continue
                    most += limit
                if with_it._usage(node, where) > most:  # our own
                    return False
        return True

    def _with(self, queue: Node, asked: Amounts) -> BruteQueues:
        other = BruteQueues(list(self.nodes.values()), self.flavors)
        other.used = {name: dict(amounts) for name, amounts in self.used.items()}
        mine = other.used.setdefault(queue.name, {})
        for where, amount in asked.items():
            mine[where] = mine.get(where, 0) + amount
        return other

    # --- shares ----------------------------------------------------------------------

    def _potential(self, node: Node, where: Where) -> int:
        own = self._subtree(node, where)
        if not node.parent:
            return own
        above = self._potential(self.nodes[True, node.parent], where)
        most = self._kept(node, where) + above
        limit = node.quotas.get(where, (0, None, None))[1]
        return most if limit is None else min(most, own + limit)

    def _all_quotas(self) -> set[Where]:
        return {where for node in self.nodes.values() for where in node.quotas}

    def _key(self, node: Node, gang: Wanted, flavor: str) -> Key:
        """Return the share of a node once a gang is in, and the gang's age."""
        queue = self.nodes[False, gang.queue]
        asked = {(flavor, r): a for r, a in gang.amounts.items()}
        other = self._with(queue, asked)
        cohort, borrows = self.nodes[True, node.parent], False
        parts: dict[str, Fraction] = {}
        for where in self._all_quotas():
            beyond = other._usage(node, where) - self._subtree(node, where)
            # What a cohort's gang takes of what its queue keeps is not the cohort's.
            adds = other._usage(node, where) > self._usage(node, where)
            if beyond > 0:
                parts[where[1]] = parts.get(where[1], Fraction()) + beyond
                borrows = borrows or (where in asked and adds)
        share = Fraction()
        for resource, amount in parts.items():
            lendable = sum(
                self._potential(cohort, where)
                for where in self._all_quotas()
                if where[1] == resource
            )
            if lendable:
                share = max(share, amount / lendable)
        if not node.weight:
            return (borrows, share > 0, share, gang.age)
        return (borrows, False, share / node.weight, gang.age)

    # --- who is next -----------------------------------------------------------------

    def _best(self, heads: list[Wanted]) -> Wanted:
        flavors = {head.age: self.fit(head) for head in heads}
        fitting = [head for head in heads if flavors[head.age]]
        if not fitting:
            return min(heads, key=lambda each: each.age)
        winners = []
        for root in [node for node in self.nodes.values() if not node.parent]:
            winner = self._tournament(root, fitting, flavors)
            if winner is not None:
                path = self._path(self.nodes[False, winner.queue])
                key: Key = (False, False, Fraction(), winner.age)
                if len(path) > 1:
                    key = self._key(path[-2], winner, flavors[winner.age])
                winners.append((key, winner))
        return min(winners, key=lambda each: each[0])[1]

    def _tournament(
        self, node: Node, heads: list[Wanted], flavors: dict[int, str]
    ) -> Wanted | None:
        if not node.is_cohort:
            return next((head for head in heads if head.queue == node.name), None)
        candidates = []
        for child in self._children(node):
            winner = self._tournament(child, heads, flavors)
            if winner is not None:
                key = self._key(child, winner, flavors[winner.age])
                candidates.append((key, winner))
        return min(candidates, key=lambda each: each[0])[1] if candidates else None

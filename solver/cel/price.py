"""What evaluating a selector costs at most, estimated before it runs.

In the manner of the API server, which refuses selectors by the same limit: sizes are
followed through the checked expression, from what a device may hold at most, and each
step is charged by the sizes that it goes through. An estimate never lower than one by
cel-go would take all of cel-go; where the two differ this one is lower, and what it
lets through meets the budgets of CPU time.

Source: cel-go, checker/cost.go; k8s.io/apiserver, pkg/cel/library/cost.go;
k8s.io/dynamic-resource-allocation, cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from solver.cel.checked import CelNode, CheckedExpression
from solver.cel.deep import NAME

MAX_PRICE = 1_000_000
"""DRA: CELSelectorExpressionMaxCost."""
UNKNOWN = 2**64 - 1
_LIST, _MAP = 10, 30
"""Price of making a list or a map."""


class Shape(Struct, frozen=True):
    """How large a value may be: characters, bytes or entries; a number is 1."""

    low: int = 0
    high: int = UNKNOWN
    key: Shape | None = None
    item: Shape | None = None
    """Elements of a list, or values of a map; None: who knows."""

    def union(self, other: Shape) -> Shape:
        """Return what covers both."""
        return Shape(
            min(self.low, other.low),
            max(self.high, other.high),
            _union(self.key, other.key),
            _union(self.item, other.item),
        )

    def plus(self, other: Shape) -> Shape:
        """Return the one behind the other."""
        item = _union(self.item, other.item)
        return Shape(self.low + other.low, self.high + other.high, item=item)


def _union(one: Shape | None, other: Shape | None) -> Shape | None:
    return None if one is None or other is None else one.union(other)


def exactly(size: int) -> Shape:
    """Make the shape of what is known to be so large."""
    return Shape(size, size)


ANY, SCALAR = Shape(), exactly(1)
_VALUE = Shape(0, 64, item=Shape(0, 64))
"""Of an attribute, or one of its values (DRA: DeviceAttributeMaxValueLength)."""
VARIABLES = {
    "device.driver": Shape(0, 63),
    "device.attributes": Shape(
        0, 32, key=Shape(0, 63), item=Shape(0, 32, key=Shape(0, 32), item=_VALUE)
    ),
    "device.capacity": Shape(
        0, 32, key=Shape(0, 63), item=Shape(0, 32, key=Shape(0, 32), item=SCALAR)
    ),
    "device.allowMultipleAllocations": SCALAR,
}
VARIABLES["device__"] = Shape(4, 4, key=SCALAR, item=VARIABLES["device.attributes"])
Priced = tuple[int, Shape]
"""What a step costs at most, and what it results in."""


def price(expression: CheckedExpression) -> int:
    """Estimate what an expression costs at most, in the units of Kubernetes."""
    return _Pricing(expression).price(expression.root, VARIABLES)[0]


class _Pricing:
    """Prices the nodes of one expression; `shapes`: of the variables in scope."""

    def __init__(self, expression: CheckedExpression) -> None:
        self._types = expression.types

    def price(self, node: CelNode, shapes: dict[str, Shape]) -> Priced:
        match node.kind:
            case "const":
                return 0, exactly(node.size)
            case "ident":
                is_ours = node.name.startswith(NAME)
                return (0 if is_ours else 1), shapes.get(node.name, ANY)
            case "select":
                cost, shape = self.price(node.parts[0], shapes)
                if node.is_test:
                    return cost, SCALAR
                return cost + 1, shape.item or ANY
            case "list":
                return self._price_list(node.parts, shapes)
            case "map":
                return self._price_map(node.parts, shapes)
            case "comprehension":
                return self._price_comprehension(node, shapes)
            case _:
                return self._price_call(node, shapes)

    def _price_list(self, parts: Sequence[CelNode], shapes: dict[str, Shape]) -> Priced:
        costs, items = self._price_all(parts, shapes)
        item = _union_all(items)
        return costs + _LIST, Shape(len(parts), len(parts), item=item)

    def _price_map(self, parts: Sequence[CelNode], shapes: dict[str, Shape]) -> Priced:
        costs, items = self._price_all(parts, shapes)
        count = len(parts) // 2
        keys, values = _union_all(items[::2]), _union_all(items[1::2])
        return costs + _MAP, Shape(count, count, key=keys, item=values)

    def _price_all(
        self, parts: Sequence[CelNode], shapes: dict[str, Shape]
    ) -> tuple[int, list[Shape]]:
        priced = [self.price(part, shapes) for part in parts]
        return sum(cost for cost, _ in priced), [shape for _, shape in priced]

    def _price_comprehension(self, node: CelNode, shapes: dict[str, Shape]) -> Priced:
        """Price a macro: what it goes through, times its step. Or a `cel.bind`."""
        range_node, init, condition, step, result = node.parts
        range_cost, range_shape = self.price(range_node, shapes)
        init_cost, init_shape = self.price(init, shapes)
        inside = shapes | {node.accumulator: init_shape}
        if node.is_bind:
            cost, shape = self.price(result, inside)
            if node.accumulator.startswith(NAME):
                range_cost = 0  # of our own writing
            return range_cost + init_cost + cost, shape
        result_cost, _ = self.price(result, inside)
        key, item = range_shape.key or ANY, range_shape.item or ANY
        first, second = node.variables
        is_map = self._types.get(range_node.id) == "map"
        if second:
            inside |= {first: key if is_map else SCALAR, second: item}
        else:
            inside |= {first: key if is_map else item}
        condition_cost, _ = self.price(condition, inside)
        step_cost, step_shape = self.price(step, inside)
        cost = range_cost + init_cost + result_cost
        cost += range_shape.high * (condition_cost + step_cost)
        if init.kind in ("list", "map"):
            shape = structs.replace(step_shape, low=0, high=range_shape.high)
            return cost, shape
        return cost, init_shape

    def _price_call(self, node: CelNode, shapes: dict[str, Shape]) -> Priced:
        name = node.name.removesuffix("__")
        if name == "orValue" and node.parts[1].kind == "map":
            return self.price(node.parts[0], shapes)  # of our own rewriting
        costs, arguments = self._price_all(node.parts, shapes)
        match name:
            case "_&&_" | "_||_":
                return costs, SCALAR
            case "_?_:_":
                return costs, arguments[1].union(arguments[2])
            case "_[_]" | "_[?_]" | "_?._":
                return costs + 1, arguments[0].item or ANY
            case "orValue" | "or":
                return costs + 1, arguments[0].union(arguments[1])
            case _:
                return self._price_other(node, name, costs, arguments)

    def _price_other(
        self, node: CelNode, name: str, costs: int, arguments: list[Shape]
    ) -> Priced:
        kinds = [self._types.get(part.id, "") for part in node.parts]
        cost, shape = _price_function(name, arguments, kinds)
        if self._types.get(node.id, "") == "scalar":
            shape = SCALAR
        return costs + cost, shape


def _union_all(shapes: Sequence[Shape]) -> Shape:
    united = shapes[0] if shapes else exactly(0)
    for shape in shapes[1:]:
        united = united.union(shape)
    return united


def _price_function(
    name: str, arguments: Sequence[Shape], kinds: Sequence[str]
) -> Priced:
    """Price a function by the sizes of its arguments, target first."""
    rule = _RULES.get(name)
    if rule is None or len(arguments) < rule.arguments:
        return 1, arguments[0] if arguments else SCALAR
    return rule.price(arguments, kinds)


def _traverse(shape: Shape, times: int = 1) -> int:
    """Price going through a text so many times: a tenth a character, rounded up."""
    return -(-shape.high * times // 10)


def _price_addition(arguments: Sequence[Shape], kinds: Sequence[str]) -> Priced:
    if "scalar" in kinds:
        return 1, SCALAR
    both = arguments[0].plus(arguments[1])
    return (1 if "list" in kinds else max(1, _traverse(both))), both


def _price_comparison(arguments: Sequence[Shape], kinds: Sequence[str]) -> Priced:
    if "scalar" in kinds or "other" in kinds:
        return 1, SCALAR
    return max(1, min(map(_traverse, arguments))), SCALAR


def _price_insertion(arguments: Sequence[Shape], _: Sequence[str]) -> Priced:
    """Insert into a map: a key and a value, or the entries of another."""
    entries, first, *rest = arguments
    key, item = (first, rest[0]) if rest else (first.key, first.item)
    shape = Shape(
        entries.low,
        entries.high + (1 if rest else first.high),
        key=_union(entries.key, key),
        item=_union(entries.item, item),
    )
    return 1, shape


def _price_membership(arguments: Sequence[Shape], kinds: Sequence[str]) -> Priced:
    return (1 if kinds[1] == "map" else max(1, arguments[1].high)), SCALAR


def _price_search(arguments: Sequence[Shape], kinds: Sequence[str]) -> Priced:
    """Go through a list, comparing each element, or through a text."""
    if kinds[0] == "text":
        return _traverse(arguments[0]), SCALAR
    item = arguments[0].item
    each = 1 if item is None else 1 + _traverse(item)
    return arguments[0].high * each, arguments[0].item or ANY


def _price_containing(arguments: Sequence[Shape], _: Sequence[str]) -> Priced:
    return _traverse(arguments[0]) * _traverse(arguments[1]), SCALAR


def _price_pattern(arguments: Sequence[Shape], _: Sequence[str]) -> Priced:
    text = _traverse(arguments[0].plus(SCALAR))
    return text * -(-arguments[1].high // 4), Shape(0, arguments[0].high)


def _price_replacing(arguments: Sequence[Shape], _: Sequence[str]) -> Priced:
    text, old, new = arguments[:3]
    if old.low == 0:
        high = (text.high + 1) * new.high + text.high
    elif new.high <= old.low:
        high = text.high
    else:
        high = -(-text.high // old.low) * new.high
    if old.high == 0:
        low = (text.low + 1) * new.low + text.low
    elif old.high <= new.low:
        low = text.low
    else:
        low = -(-text.low // old.high) * new.low
    return _traverse(text, 2), Shape(low, high)


def _price_joining(arguments: Sequence[Shape], _: Sequence[str]) -> Priced:
    parts, item = arguments[0], arguments[0].item or exactly(0)
    separator = arguments[1].high if len(arguments) > 1 else 0
    high = parts.high * item.high + max(parts.high - 1, 0) * separator
    return -(-high // 10), Shape(0, high)


def _price_transformation(arguments: Sequence[Shape], _: Sequence[str]) -> Priced:
    return _traverse(arguments[0]), arguments[0]


def _price_splitting(arguments: Sequence[Shape], _: Sequence[str]) -> Priced:
    whole = Shape(0, arguments[0].high)
    return _traverse(arguments[0], 2), structs.replace(whole, item=whole)


def _price_quoting(arguments: Sequence[Shape], _: Sequence[str]) -> Priced:
    text = arguments[0]
    return _traverse(text), Shape(text.low + 2, 2 * text.high + 2)


def _price_prefix(arguments: Sequence[Shape], _: Sequence[str]) -> Priced:
    return _traverse(arguments[1]), SCALAR


def _price_parsing(arguments: Sequence[Shape], _: Sequence[str]) -> Priced:
    return _traverse(arguments[0]), SCALAR


class _Rule(Struct, frozen=True):
    """How functions are priced, and how many arguments they have at least."""

    names: str
    arguments: int
    price: Callable[[Sequence[Shape], Sequence[str]], Priced]


_RULES = {
    name: rule
    for rule in (
        _Rule("_+_", 2, _price_addition),
        _Rule("_==_ _!=_ _<_ _<=_ _>_ _>=_", 2, _price_comparison),
        _Rule("@in _in_", 2, _price_membership),
        _Rule("isSorted sum max min indexOf lastIndexOf includes", 1, _price_search),
        _Rule("cel.mapInsert_", 2, _price_insertion),
        _Rule("contains", 2, _price_containing),
        _Rule("matches find findAll", 2, _price_pattern),
        _Rule("replace", 3, _price_replacing),
        _Rule("join", 1, _price_joining),
        _Rule("split", 1, _price_splitting),
        _Rule("strings.quote", 1, _price_quoting),
        _Rule("startsWith endsWith", 2, _price_prefix),
        _Rule("lowerAscii upperAscii substring trim url", 1, _price_transformation),
        _Rule(
            "quantity isQuantity semver isSemver cidr isCIDR ip isIP ip.isCanonical",
            1,
            _price_parsing,
        ),
    )
    for name in rule.names.split()
}

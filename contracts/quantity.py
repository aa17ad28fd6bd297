"""Kubernetes quantities as exact integers of 1e-9 units; floats never enter.

`Quantity` keeps the text it was written in, so that what we republish reads as its
author wrote it, and compares by value alone: `Quantity.parse("1Gi") ==
Quantity.parse("1073741824")`. It stands alone because both the contracts and the
selectors need it.
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering

NANO = 10**9
"""Base units of 1: a quantity of `1` is `NANO`."""
MAX_NANO = 10**30 * NANO
"""Amounts beyond it, either way, count as it: more than 64 bits on purpose,
as Kubernetes keeps `10E` too."""
INTEGER_RULE = "must be an integer: 3, 3000m and 3Ki are, 0.5 and 1500m are not"
"""The rule that is quoted where a quantity must be a whole number."""
MAX_TEXT = 256
"""Characters; the API server writes far fewer."""

_SUFFIXES = {
    "n": (1, 0),
    "u": (10**3, 0),
    "m": (10**6, 0),
    "": (NANO, 0),
    "k": (NANO * 10**3, 0),
    "M": (NANO * 10**6, 0),
    "G": (NANO * 10**9, 0),
    "T": (NANO * 10**12, 0),
    "P": (NANO * 10**15, 0),
    "E": (NANO * 10**18, 0),
    "Ki": (NANO, 10),
    "Mi": (NANO, 20),
    "Gi": (NANO, 30),
    "Ti": (NANO, 40),
    "Pi": (NANO, 50),
    "Ei": (NANO, 60),
}
_PATTERN = re.compile(
    r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d{1,4})|([KMGTPE]i|[numkMGTPE]))?",
    re.ASCII,
)


_MEBI = 1 << 20
_BINARY = tuple((10 * power, unit) for power, unit in enumerate(" KMGTPE") if power)
"""Powers of two with the letters of their suffixes."""
_DECIMAL = tuple((3 * power, unit) for power, unit in enumerate(" kMGTPE") if power)
"""Powers of ten with their suffixes."""


def format_binary(units: int) -> str:
    """Write a number of bytes in the largest binary unit that is whole: `64Gi`."""
    for shift, letter in reversed(_BINARY):
        if units and units % (1 << shift) == 0:
            return f"{units >> shift}{letter}i"
    return str(units)


def _format_decimal(units: int) -> str:
    """Write a number in the largest decimal unit that is whole: `10G`."""
    for power, letter in reversed(_DECIMAL):
        if units and units % 10**power == 0:
            return f"{units // 10**power}{letter}"
    return str(units)


class QuantityError(ValueError):
    """A text that is no Kubernetes quantity."""

    def __init__(self, text: str) -> None:
        self.text = text
        shown = text if len(text) <= MAX_TEXT else f"{text[:40]}..."
        super().__init__(f"{shown!r} is not a quantity (such as 500m, 4 or 80Gi)")


@total_ordering
class Quantity:
    """An amount: `nano` (exact, in 1e-9 units) and the text it was written in."""

    __slots__ = ("nano", "text")

    nano: int
    text: str

    def __init__(self, nano: int, text: str) -> None:
        object.__setattr__(self, "nano", nano)
        object.__setattr__(self, "text", text)

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity; like Kubernetes, round away from zero to 1e-9 and cap.

        Raises:
            QuantityError: the text is not a quantity, or longer than `MAX_TEXT`.

        Source: k8s.io/apimachinery/pkg/api/resource, ParseQuantity.
        """
        if len(text) > MAX_TEXT:
            raise QuantityError(text)
        return _parse_quantity(text)

    @classmethod
    def of(cls, units: int) -> Quantity:
        """Make the quantity of so many whole units, as people write it: `80Gi`, `98`.

        From 1 Mi on multiples of 1 Ki and of 1000 have a suffix: the one of which fewer
        are counted, `10G` rather than `9765625Ki`. Other numbers stay.
        """
        text = str(units)
        if abs(units) >= _MEBI:
            text = min(format_binary(units), _format_decimal(units), text, key=len)
        return cls(units * NANO, text)

    @classmethod
    def of_nano(cls, nano: int) -> Quantity:
        """Make a quantity of 1e-9 units: as `of`, or in the largest unit below."""
        if nano % NANO == 0:
            return cls.of(nano // NANO)
        for suffix, scale in (("m", 10**6), ("u", 10**3)):
            if nano % scale == 0:
                return cls(nano, f"{nano // scale}{suffix}")
        return cls(nano, f"{nano}n")

    @property
    def whole(self) -> int | None:
        """How many whole units it is: 3 of `3`, `3000m` and `3e0`; None: of `1500m`.

        The one rule for everything that is counted; nothing is rounded.
        """
        units, rest = divmod(self.nano, NANO)
        return None if rest else units

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Quantity is frozen: cannot set {name}")

    def __reduce__(self) -> tuple[type[Quantity], tuple[int, str]]:
        return (Quantity, (self.nano, self.text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __repr__(self) -> str:
        return f"Quantity({self.text})"

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=65536)
def _parse_quantity(text: str) -> Quantity:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise QuantityError(text)
    sign, digits, exponent, suffix = match.groups()
    whole, _, fraction = digits.partition(".")
    scale, shift = _SUFFIXES[suffix or ""]
    tens = int(exponent[1:]) if exponent else 0
    numerator = (int((whole + fraction) or "0") * scale) << shift
    power = tens - len(fraction)
    nano = numerator * 10**power if power >= 0 else -(-numerator // 10 ** (-power))
    nano = min(nano, MAX_NANO)
    return Quantity(-nano if sign == "-" else nano, text)

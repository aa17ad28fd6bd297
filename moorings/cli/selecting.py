"""Label selectors as kubectl's users type them: `app=a,tier!=web,zone in (a, b)`."""

from __future__ import annotations

import re

from contracts.labels import LabelSelector, LabelSelectorRequirement
from moorings.errors import UsageError

_TERM = re.compile(
    r"\s*(?:"
    r"(?P<not>!)?\s*(?P<there>[\w./-]+)"
    r"|(?P<key>[\w./-]+)\s*(?P<sign>==|=|!=)\s*(?P<value>[\w.-]*)"
    r"|(?P<set>[\w./-]+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)"
    r")\s*(?:,|$)"
)


def parse_selector(text: str) -> LabelSelector:
    """Read a selector; empty, it selects everything.

    Raises:
        UsageError: it cannot be read.
    """
    terms, place = [], 0
    while place < len(text):
        found = _TERM.match(text, place)
        if found is None:
            raise UsageError(
                f"--selector {text!r}: {text[place:]!r} cannot be read; write it as "
                "app=train,tier!=test,zone in (a, b)"
            )
        terms.append(_to_requirement(found))
        place = found.end()
    return LabelSelector(match_expressions=tuple(terms))


def _to_requirement(found: re.Match[str]) -> LabelSelectorRequirement:
    if key := found["there"]:
        operator = "DoesNotExist" if found["not"] else "Exists"
        return LabelSelectorRequirement(key=key, operator=operator)
    if key := found["key"]:
        operator = "NotIn" if found["sign"] == "!=" else "In"
        values: tuple[str, ...] = (found["value"],)
    else:
        key, operator = found["set"], "In" if found["op"] == "in" else "NotIn"
        values = tuple(value.strip() for value in found["values"].split(","))
    return LabelSelectorRequirement(key=key, operator=operator, values=values)

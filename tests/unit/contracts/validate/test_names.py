"""Names: the longest and the oddest that Kubernetes takes, and the next ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contracts.validate import names
from contracts.validate.violation import Violations


@pytest.mark.parametrize(
    ("check", "accepted", "refused"),
    [
        (names.check_dns_label, "a" * 63, "a" * 64),
        (names.check_dns_label, "a-0", "a.b"),
        (names.check_dns_subdomain, "a.b-c.0", "a..b"),
        (names.check_dns_subdomain, "a" * 253, "a" * 254),
        (names.check_driver_name, "GPU.example.com", "gpu_1"),
        (names.check_driver_name, "a" * 63, "a" * 64),
        (names.check_pool_name, "rack-1/node-1", "rack-1//node-1"),
        (names.check_qualified_name, "_index9", "9index"),
        (names.check_qualified_name, "d.io/" + "a" * 32, "d.io/" + "a" * 33),
        (names.check_fully_qualified_name, "d.io/a", "a"),
        (names.check_label_key, "d.io/A_b.c", "d.io/"),
        (names.check_label_key, "a" * 63, "a" * 64),
        (names.check_label_value, "", "-a"),
        (names.check_extended_resource_name, "example.com/gpu", "requests.d.io/gpu"),
        (names.check_semantic_version, "1.0.0-rc.1+b-1", "1.0.0-01"),
        (
            names.check_uuid,
            "7c1b0f8e-4a57-4f2f-9d6e-0d2f6f3f0a01",
            "7C1B0F8E-4A57-4F2F-9D6E-0D2F6F3F0A01",
        ),
    ],
)
def test_a_name_within_its_rule_is_accepted_and_the_next_refused(
    check: Callable[[str, str], Violations], accepted: str, refused: str
) -> None:
    """Each rule draws its line where Kubernetes draws it."""
    assert list(check(accepted, "at")) == []
    assert [violation.field for violation in check(refused, "at")][:1] == ["at"]


def test_a_name_of_many_parts_is_refused_part_by_part() -> None:
    """Every broken part of a pool's name is shown on its own."""
    violations = list(names.check_pool_name("A/b/C", "at"))
    assert [text.message.partition(":")[0] for text in violations] == ['"A"', '"C"']

"""What the texts of /sys say, and what they do not."""

from __future__ import annotations

import pytest

from nodeagent.sources.sysfs import parse


@pytest.mark.parametrize(
    ("text", "number"),
    [("0x10de", 0x10DE), ("0x060400", 0x60400), ("10de", None), ("0x", None)],
)
def test_ids_are_hexadecimal(text: str, number: int | None) -> None:
    assert parse.parse_hex(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("-1", -1),
        ("9" * 19, None),
        (str(2**63 - 1), 2**63 - 1),
        ("٣", None),
        ("", None),
    ],
)
def test_numbers_fit_64_bits(text: str, number: int | None) -> None:
    """More is no number; nor are digits of other scripts."""
    assert parse.parse_decimal(text) == number


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("32.0 GT/s PCIe", 32000),
        ("2.5 GT/s PCIe", 2500),
        ("8 GT/s", 8000),
        ("Unknown", None),
        ("0.0 GT/s", None),
    ],
)
def test_speeds_of_pcie_links(text: str, speed: int | None) -> None:
    assert parse.parse_link_speed(text) == speed


def test_rates_and_states_of_rdma_ports() -> None:
    assert parse.parse_port_rate("400 Gb/sec (4X NDR)") == 400_000
    assert parse.parse_port_rate("2.5 Gb/sec (1X SDR)") == 2500
    assert parse.parse_port_state("4: ACTIVE") == (4, "ACTIVE")
    assert parse.parse_port_state("ACTIVE") is None


def test_totals_of_aer_counters() -> None:
    """The total has the severity in its name; the others are kinds of errors."""
    text = "DLP 1\nTLP 2\nTOTAL_ERR_NONFATAL 3\n"
    assert parse.parse_aer_total(text, "NONFATAL") == 3
    assert parse.parse_aer_total(text, "FATAL") is None
    assert parse.parse_aer_total("TOTAL_ERR_FATAL -1", "FATAL") is None


def test_uncorrectable_memory_errors() -> None:
    assert parse.parse_uncorrectable("ue: 2\nce: 70") == 2
    assert parse.parse_uncorrectable("ce: 70") is None


def test_texts_become_values_of_attributes() -> None:
    """Printable, without blanks at the ends, of at most 64 characters."""
    assert parse.clean_text(" SAMSUNG \0 MZQL2\x1b[31m ") == "SAMSUNG MZQL2 [31m"
    assert parse.clean_text("x" * 100) == "x" * 64

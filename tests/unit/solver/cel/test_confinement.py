"""The filter of system calls, run as the kernel runs it (classic BPF)."""

from __future__ import annotations

import errno
import struct

import pytest

from solver.cel import confinement

ALLOWED, REFUSED, KILLED = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
READ_WRITE_EXIT = {"x86_64": (0, 1, 231), "aarch64": (63, 64, 94)}
OPENAT_SOCKET_CLONE = {"x86_64": (257, 41, 56), "aarch64": (56, 198, 220)}
EXECVE_KILL_PRCTL = {"x86_64": (59, 62, 157), "aarch64": (221, 129, 167)}


def answer(machine: str, architecture: int, number: int) -> int:
    """Run the filter of a machine on a system call."""
    code = confinement.assemble_filter(machine)
    program = list(struct.iter_unpack("=HBBI", code))
    data = {0: number, 4: architecture}
    register = place = 0
    while True:
        operation, then, otherwise, constant = program[place]
        place += 1
        match operation:
            case 0x20:
                register = data[constant]
            case 0x15:
                place += then if register == constant else otherwise
            case 0x45:
                place += then if register & constant else otherwise
            case _:
                return int(constant)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_what_computing_needs_is_allowed_and_nothing_else(machine: str) -> None:
    """By the numbers of each architecture."""
    architecture = ARCHITECTURES[machine]
    for number in READ_WRITE_EXIT[machine]:
        assert answer(machine, architecture, number) == ALLOWED
    for number in OPENAT_SOCKET_CLONE[machine] + EXECVE_KILL_PRCTL[machine]:
        assert answer(machine, architecture, number) == REFUSED
    allowed = [n for n in range(600) if answer(machine, architecture, n) == ALLOWED]
    assert len(allowed) == 28


def test_numbers_of_another_architecture_are_not_taken_for_its_own() -> None:
    """A 64-bit process may call as one of 32 bits, with other numbers."""
    assert answer("x86_64", 0x40000003, 0) == KILLED
    assert answer("x86_64", ARCHITECTURES["x86_64"], 0x40000000) == REFUSED

"""What a process that evaluates selectors gives up before it reads the first one.

Nothing here needs a privilege. Landlock takes files, TCP and signals away, a seccomp
filter every system call but those that computing and answering need, and resource
limits what is left where the kernel has neither. The numbers are the kernel's ABI:
linux/landlock.h, linux/seccomp.h, asm/unistd.h. Threads must not run yet.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct

from runtime.kernel import prctl

_SET_SECCOMP, _SET_NO_NEW_PRIVS = 22, 38
"""Of prctl(2)."""
_FILTER_MODE = 2
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
_VERSION_OF_LANDLOCK = 1
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many of the rights on files each version knows; later ones as the last."""
_TCP_RIGHTS, _SCOPES = 0b11, 0b11
"""Bind and connect (version 4); abstract sockets and signals (version 6)."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SYSTEM_CALLS = {
    "brk": (12, 214),
    "clock_getres": (229, 114),
    "clock_gettime": (228, 113),
    "close": (3, 57),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "futex": (202, 98),
    "getpid": (39, 172),
    "getrandom": (318, 278),
    "getrusage": (98, 165),
    "gettid": (186, 178),
    "gettimeofday": (96, 169),
    "lseek": (8, 62),
    "madvise": (28, 233),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "read": (0, 63),
    "restart_syscall": (219, 128),
    "rseq": (334, 293),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "setitimer": (38, 103),
    "sigaltstack": (131, 132),
    "write": (1, 64),
}
"""All that is allowed: its number on each architecture, in their order."""
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
"""Instructions of BPF, each with a constant."""
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
"""Offsets in what a filter sees of a call."""
_X32_BIT = 0x40000000
_ALLOW, _FAIL, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
"""What a filter answers; with the second the call fails with an errno."""


def forbid_files() -> int:
    """Take files, TCP and signals to others away, from this process and its children.

    Gives the version of Landlock that did; 0: the kernel has none, nothing changed.
    Programs that are executed are bound as well and gain no rights (no_new_privs).
    """
    if not _set_no_new_privileges():
        return 0
    version = _syscall(_LANDLOCK_CREATE, None, 0, _VERSION_OF_LANDLOCK)
    if version < 1:
        return 0
    rights = (1 << _FILE_RIGHTS[min(version, max(_FILE_RIGHTS))]) - 1
    rules = struct.pack("=Q", rights)
    if version >= 4:
        rules += struct.pack("=Q", _TCP_RIGHTS)
    if version >= 6:
        rules += struct.pack("=Q", _SCOPES)
    ruleset = _syscall(_LANDLOCK_CREATE, rules, len(rules), 0)
    if ruleset < 0:
        return 0
    try:
        return version if _syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0 else 0
    finally:
        os.close(ruleset)


def forbid_system_calls() -> bool:
    """Let every system call but the few that are needed fail with EPERM.

    False: the kernel or this architecture has no filter of ours, nothing changed.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES or not _set_no_new_privileges():
        return False
    code = assemble_filter(machine)
    program = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: the number of instructions, and where they are.
    header = struct.pack("@HP", len(code) // 8, ctypes.addressof(program))
    return prctl(_SET_SECCOMP, _FILTER_MODE, header)


def assemble_filter(machine: str) -> bytes:
    """Return the filter of an architecture, as instructions of classic BPF.

    Another architecture's calls kill the process; what is not allowed fails.

    Raises:
        KeyError: there is no filter for this machine.
    """
    column = list(_ARCHITECTURES).index(machine)
    numbers = [calls[column] for calls in _SYSTEM_CALLS.values()]
    count = len(numbers)
    return b"".join(
        (
            _instruction(_LOAD, _ARCHITECTURE_AT),
            _instruction(_JUMP_IF_EQUAL, _ARCHITECTURES[machine], then=1),
            _instruction(_RETURN, _KILL_PROCESS),
            _instruction(_LOAD, _NUMBER_AT),
            _instruction(_JUMP_IF_SET, _X32_BIT, then=count),
            *(
                _instruction(_JUMP_IF_EQUAL, number, then=count - place)
                for place, number in enumerate(numbers)
            ),
            _instruction(_RETURN, _FAIL | errno.EPERM),
            _instruction(_RETURN, _ALLOW),
        )
    )


def forbid_growth() -> None:
    """Take new descriptors, files and processes away, by limits of any Unix.

    Without new descriptors nothing is opened or connected. Root alone may raise them.
    """
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
        resource.setrlimit(limit, (0, 0))


def _instruction(code: int, constant: int, then: int = 0) -> bytes:
    """Lay out struct sock_filter; a jump skips `then` instructions if it holds."""
    return struct.pack("=HBBI", code, then, 0, constant)


def _set_no_new_privileges() -> bool:
    return prctl(_SET_NO_NEW_PRIVS, 1)


def _syscall(number: int, *arguments: bytes | int | None) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    return int(library.syscall(number, *arguments))

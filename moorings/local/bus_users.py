"""The users of a local bus: random passwords, in files that only their owner may read.

The same accounts and rights as on a cluster. Whoever else has a login on the machine
reaches the server on loopback and is not let in.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from moorings.bus_client import BusLogin
from runtime.bus.permissions import PASSWORDS, server_configuration
from runtime.users import USERS, logins_of, password_variable

PERMISSIONS = "permissions.conf"
_PASSWORD_BYTES = 24


class LocalUsers:
    """The files of one server's users, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        """Give every login a new password; the server must read it before clients do.

        Raises:
            OSError: the files cannot be written.
        """
        for folder in (self.folder, self.folder / "users"):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
        lines = []
        for user in USERS:
            first, *_ = logins = logins_of(user)
            passwords = {login: _make_password() for login in logins}
            lines += [
                f"{password_variable(login)}: {password}"
                for login, password in passwords.items()
            ]
            self._write_file(self.password_file(user), f"{first}:{passwords[first]}\n")
        self._write_file(self.folder / PASSWORDS, "\n".join([*lines, ""]))
        self._write_file(self.folder / PERMISSIONS, server_configuration())

    def password_file(self, user: str) -> Path:
        """Name the file with what a user presents."""
        return self.folder / "users" / user

    def login_of(self, user: str) -> BusLogin:
        """Speak as a user."""
        return BusLogin(user=user, password_file=str(self.password_file(user)))

    def _write_file(self, path: Path, text: str) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        # Made anew, so that no former right to it lasts.
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)


def _make_password() -> str:
    # A letter first: nats-server would read digits as a number.
    return f"p{secrets.token_hex(_PASSWORD_BYTES)}"

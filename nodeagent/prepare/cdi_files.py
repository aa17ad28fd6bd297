"""The CDI files of one driver's prepared claims, where container runtimes look.

One file a claim; what is not ours in the folder is left alone. Each file carries the
record of its claim, for a checkpoint that lost it. All methods block.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from contracts.ids import ClaimUID, DriverName
from nodeagent.cdi import ContainerEdits, write_spec
from nodeagent.errors import TornRecordError
from nodeagent.prepare import files
from nodeagent.prepare.prepared import PreparedClaim, decode_record, encode_record
from runtime.log import get_logger

log = get_logger(__name__)

_RECORD = "moorings.dev/record"
_MODE = 0o640
_SUFFIX = ".json"


class _Annotated(Struct):
    annotations: dict[str, str] = {}


class CdiFiles:
    """The files of a driver in one folder."""

    def __init__(self, folder: Path, driver: DriverName) -> None:
        self._folder = folder
        self._driver = driver
        self._prefix = f"{driver}-claim_"

    def open(self) -> None:
        """Create the folder, and remove what was never written whole.

        Raises:
            OSError: it cannot be had.
        """
        files.make_folder(self._folder, 0o755)
        files.remove_stale(self._folder, self._prefix)

    def list_claims(self) -> tuple[ClaimUID, ...]:
        """List the claims that have a file."""
        names = (path.name for path in self._folder.glob(f"{self._prefix}*{_SUFFIX}"))
        return tuple(
            ClaimUID(name.removeprefix(self._prefix).removesuffix(_SUFFIX))
            for name in names
        )

    def read_record(self, uid: ClaimUID) -> PreparedClaim:
        """Read the record of a claim from its file.

        Raises:
            TornRecordError: there is none, or it is torn.
        """
        try:
            spec = msgspec.json.decode(self._path(uid).read_bytes(), type=_Annotated)
            prepared = decode_record(spec.annotations.get(_RECORD, "").encode())
        except (OSError, ValueError, RecursionError) as error:
            raise TornRecordError(str(error)) from error
        if (prepared.claim.uid, prepared.driver) != (uid, self._driver):
            raise TornRecordError("it belongs to another claim")
        return prepared

    def write(
        self, prepared: PreparedClaim, devices: Mapping[str, ContainerEdits]
    ) -> None:
        """Write a claim's file, unless it is as it should be.

        Not synced: after the machine stopped no container runs, and kubelet has each
        claim prepared again before one does.

        Raises:
            OSError: it cannot be written.
        """
        path = self._path(prepared.claim.uid)
        record = encode_record(prepared).decode()
        data = write_spec(self._driver, devices, {_RECORD: record})
        with suppress(OSError):
            if path.read_bytes() == data:
                return
        files.write_quickly(path, data, _MODE)
        log.info("cdi.written", claim=str(prepared.claim), uid=prepared.claim.uid)

    def remove(self, uid: ClaimUID) -> None:
        """Remove a claim's file, if it has one.

        Raises:
            OSError: it may not be removed.
        """
        files.remove(self._path(uid))

    def _path(self, uid: ClaimUID) -> Path:
        return files.place(self._folder, f"{self._prefix}{uid}{_SUFFIX}")

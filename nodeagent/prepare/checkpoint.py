"""The claims that are prepared on this node, kept through every crash.

One record a claim, so that a torn one costs that claim alone; two agents of one driver
share the folder while one replaces the other, and a lock makes their decisions one
after the other. What cannot be read is built anew from the claim's CDI file; where that
is gone too, no container was told of the claim, and kubelet asks again. All methods
block, for less than a disk write unless they say so.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from contracts.ids import ClaimUID, DriverName
from nodeagent.errors import TornRecordError
from nodeagent.prepare import files
from nodeagent.prepare.cdi_files import CdiFiles
from nodeagent.prepare.plan import check_free
from nodeagent.prepare.prepared import PreparedClaim, decode_record, encode_record
from runtime.log import get_logger

log = get_logger(__name__)

_SUFFIX = ".json"
_LOCK = "lock"


class Checkpoint:
    """The prepared claims of one driver."""

    def __init__(self, folder: Path, driver: DriverName, cdi: CdiFiles) -> None:
        self._folder = folder
        self._driver = driver
        self._cdi = cdi
        self._claims: dict[ClaimUID, PreparedClaim] = {}
        self._inodes: dict[ClaimUID, int] = {}

    @property
    def claims(self) -> Mapping[ClaimUID, PreparedClaim]:
        """The prepared claims, as of the last `refresh`."""
        return MappingProxyType(self._claims)

    def open(self) -> None:
        """Create the folder, read what is there and mend what is torn.

        Raises:
            OSError: the folder cannot be had.
        """
        files.make_folder(self._folder)
        files.remove_stale(self._folder)
        self.refresh()
        for uid in self._cdi.list_claims():
            if uid not in self._claims:
                self._rebuild_record(uid)

    def refresh(self) -> None:
        """Read what another agent of this node has written since.

        Raises:
            OSError: the folder cannot be read.
        """
        with os.scandir(self._folder) as entries:
            inodes = {
                ClaimUID(entry.name.removesuffix(_SUFFIX)): entry.inode()
                for entry in entries
                if entry.name.endswith(_SUFFIX)
            }
        for uid in self._inodes.keys() - inodes.keys():
            self._forget_record(uid)
        for uid, inode in inodes.items():
            if self._inodes.get(uid) != inode:
                self._inodes[uid] = inode
                self._load_record(uid)

    def _load_record(self, uid: ClaimUID) -> None:
        self._claims.pop(uid, None)
        try:
            prepared = decode_record(self._path(uid).read_bytes())
            if (prepared.claim.uid, prepared.driver) != (uid, self._driver):
                raise TornRecordError("it belongs to another claim")  # noqa: TRY301
        except FileNotFoundError:
            self._forget_record(uid)
        except (OSError, ValueError, TornRecordError) as error:
            log.warning("record.torn", uid=uid, reason=str(error))
            self._rebuild_record(uid)
        else:
            self._claims[uid] = prepared

    def _rebuild_record(self, uid: ClaimUID) -> None:
        """Rebuild a record from the CDI file; without one it was never prepared."""
        try:
            prepared = self._cdi.read_record(uid)
        except TornRecordError as error:
            log.warning("record.lost", uid=uid, reason=str(error))
            return
        log.warning("record.rebuilt", uid=uid, claim=str(prepared.claim))
        self._claims[uid] = prepared
        try:
            files.write(self._path(uid), encode_record(prepared))
        except OSError as error:
            # Known from now on all the same; the next start tries again.
            log.warning("record.unwritten", uid=uid, reason=str(error))
        else:
            self._inodes[uid] = self._path(uid).stat().st_ino

    def stage(self, prepared: PreparedClaim) -> Path:
        """Write a record under no name yet; waits for the disk.

        Raises:
            OSError: the disk is full.
        """
        path = self._path(prepared.claim.uid)
        return files.stage_file(path, encode_record(prepared))

    def hold(self, prepared: PreparedClaim, staged: Path) -> bool:
        """Record that a claim holds its devices; False: the folder is locked.

        Raises:
            PrepareError: another claim holds one of the devices.
            OSError: the folder cannot be written.
        """
        with self._locked_folder() as is_locked:
            if not is_locked:
                return False
            try:
                self.refresh()
                check_free(prepared, self._claims.values())
                path = self._path(prepared.claim.uid)
                files.publish(staged, path)
            except BaseException:
                files.remove(staged)
                raise
            self._inodes[prepared.claim.uid] = path.stat().st_ino
            self._claims[prepared.claim.uid] = prepared
            return True

    def sync(self) -> None:
        """Return once what was held and released outlives a crash; waits for the disk.

        Raises:
            OSError: the disk fails.
        """
        files.sync(self._folder)

    def release(self, uid: ClaimUID) -> None:
        """Forget a claim.

        Raises:
            OSError: the record may not be removed.
        """
        files.remove(self._path(uid))
        self._forget_record(uid)

    def _forget_record(self, uid: ClaimUID) -> None:
        self._inodes.pop(uid, None)
        self._claims.pop(uid, None)

    @contextmanager
    def _locked_folder(self) -> Iterator[bool]:
        """Keep the other agents of this node out, if none is in."""
        descriptor = os.open(
            self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    def _path(self, uid: ClaimUID) -> Path:
        return files.place(self._folder, f"{uid}{_SUFFIX}")

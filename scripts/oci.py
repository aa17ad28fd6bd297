"""Writes images as OCI archives: layers that are the same for the same files.

Files are sorted, belong to root and have no time.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"


def write_archive(
    out: Path,
    name: str,
    config: dict[str, object],
    layers: list[Path],
    created: str,
) -> None:
    """Write the layout of an OCI image into a tar file.

    Sizes and digests as image-spec 1.1 has them.
    """
    blobs = {digest(path.read_bytes()): path.read_bytes() for path in layers}
    diffs = [digest(gzip.decompress(path.read_bytes())) for path in layers]
    image = {
        "created": created,
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine],
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": diffs},
    }
    said = encode(image)
    listed = [
        {"mediaType": LAYER_TYPE, "digest": key, "size": len(data)}
        for key, data in blobs.items()
    ]
    manifest = encode(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {
                "mediaType": CONFIG_TYPE,
                "digest": digest(said),
                "size": len(said),
            },
            "layers": listed,
        }
    )
    blobs |= {digest(said): said, digest(manifest): manifest}
    described = {
        "mediaType": MANIFEST_TYPE,
        "digest": digest(manifest),
        "size": len(manifest),
        "annotations": {
            "io.containerd.image.name": name,
            "org.opencontainers.image.ref.name": name.rpartition(":")[2],
        },
    }
    index = encode({"schemaVersion": 2, "manifests": [described]})
    files = {"oci-layout": encode({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    files |= {f"blobs/{key.replace(':', '/')}": data for key, data in blobs.items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(out, "w") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime, entry.mode = len(data), 0, 0o644
            archive.addfile(entry, io.BytesIO(data))


def pack(root: Path, layer: Path) -> None:
    """Write a folder as a layer: sorted, of root, at one time."""

    def same(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = 0
        if entry.name == "tmp":
            entry.mode = 0o1777
        return entry

    with (
        layer.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.GNU_FORMAT) as archive,
    ):
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            archive.add(path, name, recursive=False, filter=same)


def encode(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"

"""Served versions of `resource.k8s.io` <-> the shape of v1, on parsed JSON.

Of Kueue's kinds, v1beta1 -> the shape of v1beta2.

Only v1beta1 differs: requests are flat, devices have a `basic` body, and a slice says
"" and false for unset. Values are moved, never judged; what a version does not have is
reported like any other unknown field.

Source: k8s.io/api/resource/v1beta1 and its conversion to v1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

FLAT_FIELDS = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "derivedAttributes",
)
_PATH_OF_REQUESTS = {
    "ResourceClaim": ("spec", "devices", "requests"),
    "ResourceClaimTemplate": ("spec", "spec", "devices", "requests"),
}
_BASIC = re.compile(r"^(spec\.devices\[\d+\])\.(?!name\b)")
_EXACTLY = re.compile(r"(\brequests\[\d+\])\.exactly\b\.?")


def to_v1(kind: str, version: str, raw: Json, unknown: list[str]) -> Json:
    """Return an object in the shape of v1; the input is left as it is."""
    if kind == "ResourceSlice":
        flatten = _device_of_v1beta1 if version == "v1beta1" else None
        return _slice_to_v1(raw, flatten, unknown)
    if version != "v1beta1":
        return raw
    if kind == "ClusterQueue":
        return _change_at(raw, ("spec",), _cluster_queue_to_v1beta2)
    path = _PATH_OF_REQUESTS.get(kind)
    if path is None:
        return raw
    place = ".".join(path)
    return _change_at(raw, path, lambda value: _requests_to_v1(value, place, unknown))


def from_v1(kind: str, version: str, raw: Json) -> Json:
    """Return an object of v1 in the shape of another version."""
    if version != "v1beta1":
        return raw
    if kind == "ResourceSlice":
        return _change_at(raw, ("spec", "devices"), _devices_to_v1beta1)
    path = _PATH_OF_REQUESTS.get(kind)
    if path is None:
        return raw
    return _change_at(raw, path, _requests_to_v1beta1)


def to_written_path(kind: str, version: str, path: str) -> str:
    """Turn a path in the shape of v1 into the path that the author sees."""
    if version != "v1beta1":
        return path
    if kind == "ResourceSlice":
        return _BASIC.sub(r"\1.basic.", path)
    return _EXACTLY.sub(r"\1.", path).removesuffix(".")


def _cluster_queue_to_v1beta2(spec: Any) -> Any:
    """Move what Kueue's v1beta1 calls `cohort`."""
    if not isinstance(spec, dict) or "cohort" not in spec:
        return spec
    moved = {name: value for name, value in spec.items() if name != "cohort"}
    return {"cohortName": spec["cohort"], **moved}


def _change_at(raw: Json, path: tuple[str, ...], change: Callable[[Any], Any]) -> Json:
    """Copy the maps along a path and replace what is at its end, where it exists."""
    head, *rest = path
    value = raw.get(head)
    if value is None:
        return raw
    if rest:
        if not isinstance(value, dict):
            return raw
        return {**raw, head: _change_at(value, tuple(rest), change)}
    return {**raw, head: change(value)}


def _slice_to_v1(
    raw: Json, flatten: Callable[[Json, list[str]], Json] | None, unknown: list[str]
) -> Json:
    """Move the fields of a slice; `flatten` is how its version writes devices."""
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return raw
    spec = dict(spec)
    # First what an old version says with "" and false, and v1 with nothing.
    if flatten is not None:
        spec = {
            key: value
            for key, value in spec.items()
            if not (key == "nodeName" and value == "")
            and not (key == "allNodes" and value is False)
        }
    # Then each device: its body, and a field of before 1.37 that nothing reads.
    devices = spec.get("devices")
    if isinstance(devices, list):
        converted = []
        for index, device in enumerate(devices):
            body = device
            if isinstance(body, dict):
                if flatten is not None:
                    extras: list[str] = []
                    body = flatten(body, extras)
                    unknown.extend(f"spec.devices[{index}].{key}" for key in extras)
                if "nodeAllocatableResourceMappings" in body:
                    body = {
                        key: value
                        for key, value in body.items()
                        if key != "nodeAllocatableResourceMappings"
                    }
            converted.append(body)
        spec["devices"] = converted
    return {**raw, "spec": spec}


def _device_of_v1beta1(device: Json, extras: list[str]) -> Json:
    basic = device.get("basic")
    extras.extend(key for key in device if key not in ("name", "basic"))
    body = dict(basic) if isinstance(basic, dict) else {}
    if "name" in body:
        extras.append("basic.name")
        del body["name"]
    if "name" in device:
        body["name"] = device["name"]
    return body


def _requests_to_v1(requests: Any, place: str, unknown: list[str]) -> Any:
    if not isinstance(requests, list):
        return requests
    return [
        _request_of_v1beta1(request, f"{place}[{index}]", unknown)
        if isinstance(request, dict)
        else request
        for index, request in enumerate(requests)
    ]


def _request_of_v1beta1(request: Json, place: str, unknown: list[str]) -> Json:
    if "exactly" in request:
        unknown.append(f"{place}.exactly")
    converted = {
        key: value
        for key, value in request.items()
        if key not in FLAT_FIELDS and key != "exactly"
    }
    flat = {key: request[key] for key in FLAT_FIELDS if key in request}
    if any(_is_set(value) for value in flat.values()):
        converted["exactly"] = flat
    return converted


def _is_set(value: Any) -> bool:
    """True if Go tells the value from a missing one: not "" and 0, but false."""
    return value is not None and (value is False or value not in ("", 0))


def _devices_to_v1beta1(devices: list[Json]) -> list[Json]:
    return [
        {
            "name": device["name"],
            "basic": {key: value for key, value in device.items() if key != "name"},
        }
        for device in devices
    ]


def _requests_to_v1beta1(requests: list[Json]) -> list[Json]:
    return [
        {
            **{key: value for key, value in request.items() if key != "exactly"},
            **(request.get("exactly") or {}),
        }
        for request in requests
    ]

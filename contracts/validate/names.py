"""The names that Kubernetes and DRA allow, each kind with its rule.

Text only: what a name belongs to is said by the path it is given.

Source: k8s.io/apimachinery/pkg/util/validation; KEP-4381 for qualified names.
"""

from __future__ import annotations

import re

from contracts.meta import ObjectMeta
from contracts.validate.violation import Violations, invalid, required, too_long

MAX_LABEL = 63
MAX_SUBDOMAIN = 253
MAX_DRIVER = 63
MAX_POOL = 253
MAX_IDENTIFIER = 32

OPAQUE_INTEGER = "pod.alpha.kubernetes.io/opaque-int-resource-"
"""In front of the names of opaque integer resources (Kubernetes 1.5 to 1.7)."""
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*", re.ASCII)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LABEL_KEY = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_NUMBER = r"(?:0|[1-9][0-9]*)"
_PRE_RELEASE = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
    "or '-', and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
    "characters, '-' or '.', and must start and end with an alphanumeric character"
)
_IDENTIFIER_RULE = (
    "a valid C identifier must start with a letter or '_', followed by letters, "
    "digits or '_'"
)
_LABEL_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character"
)


def check_dns_label(name: str, path: str) -> Violations:
    """Require a DNS label: devices, requests, counters."""
    if not name:
        yield required(path)
    elif len(name) > MAX_LABEL:
        yield invalid(path, name, f"must be no more than {MAX_LABEL} bytes")
    elif not _LABEL.fullmatch(name):
        yield invalid(path, name, _LABEL_RULE)


def check_dns_subdomain(name: str, path: str) -> Violations:
    """Require a DNS subdomain: most objects, nodes, device classes."""
    if not name:
        yield required(path)
    elif len(name) > MAX_SUBDOMAIN:
        yield invalid(path, name, f"must be no more than {MAX_SUBDOMAIN} bytes")
    elif not _SUBDOMAIN.fullmatch(name):
        yield invalid(path, name, _SUBDOMAIN_RULE)


def check_driver_name(name: str, path: str) -> Violations:
    """Require a short DNS subdomain; the API server minds no upper case here."""
    if len(name.encode()) > MAX_DRIVER:
        yield too_long(path, MAX_DRIVER)
    else:
        yield from check_dns_subdomain(name.lower() if name.isascii() else name, path)


def check_pool_name(name: str, path: str) -> Violations:
    """Require DNS subdomains joined by `/`."""
    if not name:
        yield required(path)
        return
    if len(name.encode()) > MAX_POOL:
        yield too_long(path, MAX_POOL)
    for part in name.split("/"):
        if not _SUBDOMAIN.fullmatch(part):
            yield invalid(path, part, _SUBDOMAIN_RULE)


def check_qualified_name(name: str, path: str) -> Violations:
    """Require `identifier` or `domain/identifier`: attributes, capacities."""
    parts = name.split("/")
    if len(parts) > 2:
        yield invalid(path, name, "must not contain more than one slash")
        return
    *domains, identifier = parts
    for domain in domains:
        if domain:
            yield from check_driver_name(domain, path)
        else:
            yield invalid(path, name, "the domain must not be empty")
    if len(identifier.encode()) > MAX_IDENTIFIER:
        yield too_long(path, MAX_IDENTIFIER)
    if not identifier:
        yield invalid(path, name, "the name must not be empty")
    elif not _IDENTIFIER.fullmatch(identifier):
        yield invalid(path, identifier, _IDENTIFIER_RULE)


def check_fully_qualified_name(name: str, path: str) -> Violations:
    """Require `domain/identifier`."""
    yield from check_qualified_name(name, path)
    if "/" not in name:
        message = (
            "a fully qualified name must be a domain and a name separated by a slash"
        )
        yield invalid(path, name, message)


def check_label_key(name: str, path: str) -> Violations:
    """Require the key of a label, taint or condition."""
    prefix, slash, key = name.rpartition("/")
    if slash and (not _SUBDOMAIN.fullmatch(prefix) or len(prefix) > MAX_SUBDOMAIN):
        yield invalid(path, name, f"prefix part {_SUBDOMAIN_RULE}")
    elif not key:
        yield invalid(path, name, "name part must be non-empty")
    elif len(key) > MAX_LABEL:
        message = f"name part must be no more than {MAX_LABEL} bytes"
        yield invalid(path, name, message)
    elif not _LABEL_KEY.fullmatch(key):
        yield invalid(path, name, _LABEL_KEY_RULE)


def check_label_value(value: str, path: str) -> Violations:
    """Require the value of a label or taint; it may be empty."""
    if len(value) > MAX_LABEL:
        yield invalid(path, value, f"must be no more than {MAX_LABEL} bytes")
    elif value and not _LABEL_KEY.fullmatch(value):
        yield invalid(path, value, _LABEL_KEY_RULE.removeprefix("name part "))


def check_extended_resource_name(name: str, path: str) -> Violations:
    """Require a name such as `example.com/gpu` that Kubernetes does not own."""
    is_native = "/" not in name or "kubernetes.io/" in name
    is_quota = name.startswith("requests.")
    if is_native or is_quota or any(check_label_key(f"requests.{name}", path)):
        yield invalid(path, name, "must be a valid extended resource name")


def is_opaque_integer(name: str) -> bool:
    """True if a name is of an opaque integer resource, as before extended resources.

    Kubernetes counts them still: they are of its own domain.
    """
    return name.startswith(OPAQUE_INTEGER) and not any(check_label_key(name, ""))


def check_semantic_version(value: str, path: str) -> Violations:
    """Require Semantic Versioning 2.0.0 to the letter."""
    if not _VERSION.fullmatch(value):
        message = "must be a string compatible with semver.org spec 2.0.0"
        yield invalid(path, value, message)


def check_uuid(value: str, path: str) -> Violations:
    """Require a UUID in lower case."""
    if not _UUID.fullmatch(value):
        yield invalid(path, value, "must be a UUID in RFC 4122 form, in lower case")


def check_object_name(metadata: ObjectMeta, path: str = "metadata") -> Violations:
    """Require a name, or what the API server makes one of."""
    if metadata.name:
        yield from check_dns_subdomain(metadata.name, f"{path}.name")
    elif not metadata.generate_name:
        yield required(f"{path}.name", "name or generateName is required")
    if metadata.generate_name:
        stem = metadata.generate_name.rstrip("-.")
        yield from check_dns_subdomain(stem, f"{path}.generateName")
    if metadata.namespace:
        yield from check_dns_label(metadata.namespace, f"{path}.namespace")

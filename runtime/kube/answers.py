"""Turns answers of the API server into errors, one for each kind of refusal.

Stands alone because the same refusal comes in several forms: a missing permission as
403 or as 422, a recreated object as 409 or as 422. Knows no connection.

Source: k8s.io/apimachinery, metav1.Status; seen on Kubernetes 1.37.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from contracts.messages import MAX_REASON
from runtime.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    GoneError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
    ThrottledError,
    UnavailableError,
)
from runtime.kube.lenient import cut_unreadable, mark_altered

T = TypeVar("T")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_DEFAULT_THROTTLE_S = 1.0
_STRICT = "strict decoding error"
_OF_RBAC = re.compile(
    r"cannot (?P<verb>\S+) resource \"(?P<resource>[^\"]*)\" in API group "
    r"\"(?P<group>[^\"]*)\" (?P<scope>at the cluster scope|in the namespace \"[^\"]*\")"
)
_OF_STATUS = re.compile(
    r"requires resource=\"(?P<resource>[^\"]*)\", verb=\"\[?(?P<verb>[^\"\]]*)\]?\" "
    r"permission"
)
_SCOPE = re.compile(r"at the cluster scope|in the namespace \"[^\"]*\"")


class _Cause(Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(Struct, rename="camel"):
    group: str = ""
    causes: list[_Cause] | None = None
    retry_after_seconds: int = 0


class ApiStatus(Struct):
    """The body of a refusal; also the object of an ERROR event of a watch."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_API_STATUS = msgspec.json.Decoder(ApiStatus)


def error_of(
    what: str, code: int, body: bytes, retry_after: str | None = None
) -> ApiError:
    """Read a refusal: status code, body and the header Retry-After."""
    try:
        status = _API_STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = " ".join(body[:MAX_REASON].decode(errors="replace").split())
        status = ApiStatus(message=text)
    return error_of_status(what, status, code=code, retry_after=retry_after)


def error_of_status(
    what: str, status: ApiStatus, *, code: int = 0, retry_after: str | None = None
) -> ApiError:
    """Return the error of a Status; its own code counts where none is given."""
    code = code or status.code
    reason = _reason_of(status, code)
    details = status.details or _Details()
    causes = details.causes or []
    match code:
        case 401:
            return PermissionDeniedError(what, reason)
        case 403:
            return _of_forbidden(what, reason)
        case 404:
            return NotFoundError(what, reason)
        case 409 if status.reason == "AlreadyExists":
            return AlreadyExistsError(what, reason)
        case 409:
            return ConflictError(what, reason)
        case 410:
            return GoneError(what, reason)
        case 429:
            return ThrottledError(what, reason, _pause_s(retry_after, details))
        case 422:
            return _of_unprocessable(what, reason, details.group, causes)
        case _ if 400 <= code < 500:
            return InvalidError(what, reason)
        case _:
            return UnavailableError(what, reason)


def _reason_of(status: ApiStatus, code: int) -> str:
    """Return the server's words; a strict decoder's come behind the whole object."""
    words = status.message or f"status {code}"
    start = max(words.find(_STRICT), 0)
    return words[start : start + MAX_REASON]


def _of_forbidden(what: str, reason: str) -> ApiError:
    """Tell a missing rule from an object that admission refuses."""
    rule = _OF_RBAC.search(reason)
    if rule is None:
        return InvalidError(what, reason)
    return PermissionDeniedError(what, reason, **rule.groupdict())


def _of_unprocessable(
    what: str, reason: str, group: str, causes: list[_Cause]
) -> ApiError:
    """Tell invalid objects from missing rules and recreated objects."""
    for cause in causes:
        rule = _OF_STATUS.search(cause.message)
        if rule is not None:
            scope = _SCOPE.search(cause.message)
            return PermissionDeniedError(
                what,
                reason,
                verb=rule["verb"],
                group=group,
                resource=rule["resource"],
                scope=scope[0] if scope else "",
            )
    if any(cause.field == "metadata.uid" for cause in causes):
        return ConflictError(what, reason)
    return InvalidError(what, reason, causes[0].field if causes else "")


def _pause_s(retry_after: str | None, details: _Details) -> float:
    if retry_after is not None and retry_after.isdigit():
        return float(retry_after)
    return float(details.retry_after_seconds) or _DEFAULT_THROTTLE_S


def decode_answer(
    what: str,
    decoder: msgspec.json.Decoder[T],
    body: bytes,
    objects_of: Callable[[T], Iterable[dict[str, Any]]] = lambda _: (),
) -> T:
    """Decode an answer of the API server; `objects_of` gives the objects in it.

    Text that cannot be decoded is cut out of its object, which is marked (`lenient`),
    so that the others are read.

    Raises:
        UnavailableError: it is not what was asked for.
    """
    try:
        return decoder.decode(body)
    except _UNREADABLE:
        readable = cut_unreadable(body)
    try:
        answer = decoder.decode(readable)
    except _UNREADABLE as error:
        raise UnavailableError(what, f"no JSON of Kubernetes: {error}") from error
    mark_altered(objects_of(answer))
    return answer

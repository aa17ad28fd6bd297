"""The errors of a Kubernetes API server and of the way to it.

KubernetesError
|-- ClusterError       a cluster, or a kubeconfig, with which nothing can be done
`-- ApiError           whatever the API server answers that is not what was asked for
    |-- ConflictError          409: the object is not any more what we thought
    |   `-- AlreadyExistsError     409 AlreadyExists: the name is taken
    |-- NotFoundError          404: no such object, or no such kind
    |-- GoneError              410: the history to go on from is not kept any more
    |-- PermissionDeniedError  401, 403, and each 422 that is a missing permission
    |-- InvalidError           400, 422, and what admission refuses: repeat changes
    |                          nothing
    |-- ThrottledError         429: later
    `-- UnavailableError       5xx, no connection, no answer: the outcome is unknown
"""

from __future__ import annotations

_DENIED_PAUSE_S = 5.0


class KubernetesError(Exception):
    """Base of the errors of the API server and of the way to it."""

    retry_after_s: float | None = None
    """How long to wait at least before it is tried again, where that is known."""


class ClusterError(KubernetesError):
    """A cluster, or the way to it, with which nothing can be done."""

    def __init__(self, cluster: str, reason: str) -> None:
        self.cluster = cluster
        self.reason = reason
        super().__init__(f"{cluster}: {reason}")


class ApiError(KubernetesError):
    """An answer of the API server that is not what was asked for."""

    def __init__(self, what: str, reason: str) -> None:
        self.what = what
        """The request, such as `patch ResourceClaim default/a`."""
        self.reason = reason
        """In the API server's own words."""
        super().__init__(f"{what}: {reason}")


class ConflictError(ApiError):
    """The object is not what we thought: read it again and decide again."""


class AlreadyExistsError(ConflictError):
    """An object of that name exists."""


class NotFoundError(ApiError):
    """There is no such object, or the cluster does not serve the kind."""


class GoneError(ApiError):
    """The resourceVersion to continue from has expired: list again."""


class PermissionDeniedError(ApiError):
    """A rule is missing, which only a person can add; tried again slowly."""

    def __init__(
        self,
        what: str,
        reason: str,
        *,
        verb: str = "",
        group: str = "",
        resource: str = "",
        scope: str = "",
    ) -> None:
        super().__init__(what, reason)
        self.retry_after_s = _DENIED_PAUSE_S
        self.verb = verb
        self.group = group
        """The API group; empty is the core group."""
        self.resource = resource
        """With its subresource; empty: it is not known who we are."""
        self.scope = scope
        """`at the cluster scope` or `in the namespace "..."`."""

    @property
    def rule(self) -> str:
        """The rule that is missing; empty when our credentials are refused."""
        if not self.resource:
            return ""
        group = self.group or '""'
        return f"verb {self.verb} on {self.resource} of group {group} {self.scope}"

    def __str__(self) -> str:
        rule = self.rule or "credentials that the API server accepts"
        return f"{self.what}: missing permission: {rule} ({self.reason})"


class InvalidError(ApiError):
    """The API server refuses the object as it is."""

    def __init__(self, what: str, reason: str, field: str = "") -> None:
        super().__init__(what, reason)
        self.field = field
        """The first field at fault, where one is named."""


class ThrottledError(ApiError):
    """The API server asks us to come back later."""

    def __init__(self, what: str, reason: str, retry_after_s: float) -> None:
        super().__init__(what, reason)
        self.retry_after_s = retry_after_s


class UnavailableError(ApiError):
    """No answer, or none that says what was done: it may have been done."""

"""Findings of lint: rules by name, each with its object and field."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """How bad a finding is: it cannot work, or may stop working."""

    ERROR = "error"
    WARNING = "warning"


class LintRule(StrEnum):
    """Everything that lint looks for, by the name that docs and output use."""

    INVALID = "Invalid"
    """The API server would refuse the object."""
    UNKNOWN_FIELD = "UnknownField"
    """The API server would refuse the object for a field that its kind lacks."""
    UNKNOWN_CLASS = "UnknownDeviceClass"
    UNKNOWN_TEMPLATE = "UnknownResourceClaimTemplate"
    UNKNOWN_CLAIM = "UnknownResourceClaim"
    UNKNOWN_REQUEST = "UnknownRequest"
    """A container asks for a request that its claim lacks: it gets no device."""
    NODE_NAME = "NodeNameBypassesScheduler"
    """Pods that ask for devices name their node: nobody allocates their claims."""
    FRACTION = "AmountFractional"
    """A container asks for a part of what is counted in whole numbers."""
    NO_EFFECT = "MarkHasNoEffect"
    """A mark that nobody reads, or a gang of pods that do not wait for us.

    Also a value that means nothing."""
    IMMEDIATE = "AllocatedImmediately"
    """Claims of a template get devices one by one, before their pods have nodes."""
    GANG_WAITS = "GangWaits"
    """Pods would wait for what never comes: a size, or what their Gang says."""
    SIZE_DIFFERS = "GangSizeDiffers"
    """Pods declare a smaller gang than what makes them has pods."""
    SELECTOR_ERROR = "SelectorError"
    """A selector does not compile, or fails on devices of the input."""
    CLASS_EMPTY = "ClassMatchesNoDevice"
    REQUEST_EMPTY = "RequestMatchesNoDevice"
    CAPACITY = "CapacityUnavailable"
    """Devices match, but none can give the capacity that is asked."""
    CONSTRAINT = "ConstraintUnsatisfiable"
    """No node has devices that meet a constraint, by counting."""
    ATTRIBUTE_MISSING = "AttributeMissing"
    """A constraint compares an attribute that some matching devices lack."""
    TOPOLOGY_KEY = "TopologyKeyUnknown"
    """No node has the label of a topology, or no device its attribute."""
    TOPOLOGY = "TopologyUnsatisfiable"
    """No domain has devices for the pods that must share it, by counting."""
    DEVICE_LIMIT = "ClaimDeviceLimit"
    ALTERNATIVE_UNREACHABLE = "AlternativeUnreachable"
    """A subrequest is equal to an earlier one."""
    POOL_INCOMPLETE = "PoolIncomplete"
    POOL_INVALID = "PoolInvalid"
    POOL_AMBIGUOUS = "PoolNameAmbiguous"
    """Several nodes publish a pool of one name, each as a whole."""
    FEATURE_OFF = "FeatureDisabled"
    """The scheduler ignores a slice, since a gate that it needs is off."""
    TAINT_SCOPE = "TaintRuleScope"
    """A DeviceTaintRule taints every device, or none."""
    GANG_TOO_LARGE = "GangTooLarge"
    """A gang asks for more devices than there are, or a pod than any node has."""
    QUOTA = "ResourceQuotaExceeded"
    """The API server would not create what a gang needs, by a ResourceQuota."""
    POOL_OBSOLETE = "PoolGenerationObsolete"
    """Slices of an older generation are still there."""
    SLICE_NOWHERE = "SliceMatchesNoNode"
    COUNTER_EXCEEDED = "CounterExceeded"
    """A device draws more than its counter has at all."""
    COUNTER_NEGATIVE = "CounterNegative"
    """A device draws less than nothing: nobody gets it."""
    ATTRIBUTE_TWICE = "AttributeNamedTwice"
    """An attribute or capacity stands under its bare and its full name."""


class Finding(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One thing that will not work as written."""

    severity: Severity
    kind: str
    namespace: str = ""
    name: str
    field: str = ""
    rule: LintRule
    message: str

    @property
    def subject(self) -> str:
        """The object as kubectl would name it."""
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind.lower()}/{place}"


class Lint(Struct, frozen=True, kw_only=True, rename="camel"):
    """All findings; the shape of `-o json`."""

    kind: str = "Lint"
    findings: tuple[Finding, ...] = ()
    errors: int = 0
    warnings: int = 0
    objects: int = 0
    devices: int = 0


def collect_findings(findings: list[Finding], *, objects: int, devices: int) -> Lint:
    """Collect findings: by object, errors first, each once."""
    order = sorted(
        set(findings),
        key=lambda f: (f.subject, f.severity, f.rule, f.field, f.message),
    )
    errors = sum(finding.severity is Severity.ERROR for finding in order)
    return Lint(
        findings=tuple(order),
        errors=errors,
        warnings=len(order) - errors,
        objects=objects,
        devices=devices,
    )

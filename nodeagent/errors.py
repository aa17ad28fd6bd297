"""The errors of the node agent.

NodeAgentError
|-- SettingsError          a file (fleet, faults, sources) that breaks a rule
|-- PrepareError           a claim that cannot be prepared, in words for an operator
|   `-- CardChangedError   one whose device is another card now
|-- TornRecordError        a record of a prepared claim that cannot be read
|-- SourceError            devices that cannot be discovered or read now
|-- PodResourcesError      kubelet does not say what containers hold
|-- ExtendedResourceError  an extended resource that breaks a rule
`-- AdvertisementError     an extended resource of a Node that somebody else offers
"""

from __future__ import annotations


class NodeAgentError(Exception):
    """Base of the errors of the node agent."""


class SettingsError(NodeAgentError):
    """A fleet, faults or sources file that breaks a rule.

    `file` names the file, `field` the path inside it (empty: the whole), `rule` says
    what must hold there.
    """

    def __init__(self, file: str, field: str, rule: str) -> None:
        self.file = file
        self.field = field
        self.rule = rule
        super().__init__(f"{file}: {field}: {rule}" if field else f"{file}: {rule}")


class PrepareError(NodeAgentError):
    """A claim that cannot be prepared or unprepared as things are."""


class CardChangedError(PrepareError):
    """A prepared claim with a device whose name is that of another card now."""


class TornRecordError(NodeAgentError):
    """A record of a prepared claim that is torn, or of an unknown version."""


class SourceError(NodeAgentError):
    """Devices that cannot be discovered or read now; asking again may help."""

    def __init__(self, source: str, reason: str) -> None:
        self.source = source
        self.reason = reason
        super().__init__(f"device source {source}: {reason}")


class PodResourcesError(NodeAgentError):
    """Kubelet does not say which devices containers hold; asking again may help."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"kubelet's PodResources: {reason}")


class ExtendedResourceError(NodeAgentError):
    """An extended resource that breaks a rule: `text` as it was written."""

    def __init__(self, text: str, rule: str) -> None:
        self.text = text
        self.rule = rule
        super().__init__(f"{text!r}: {rule}")


class AdvertisementError(NodeAgentError):
    """A resource of a Node that the field manager `writer` offers."""

    def __init__(self, node: str, resource: str, writer: str) -> None:
        self.node = node
        self.resource = resource
        self.writer = writer
        super().__init__(
            f"Node {node}: status.capacity[{resource}] is {writer}'s, who wrote it last"
        )

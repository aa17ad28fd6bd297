"""Names and uids of gangs that are derived, and names that no gang may have. Pure.

Other projects' labels, annotations and owners name gangs, and the API server does not
look at all of them: an annotation or the name in an owner reference may be anything. A
gang is an object's namesake, so its name is one that an object may have.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import NAMESPACE_URL, uuid5

from contracts.ids import GangUID
from contracts.names import GANG
from contracts.pods.membership import Membership
from contracts.validate.names import MAX_LABEL, MAX_SUBDOMAIN, check_dns_subdomain
from contracts.workload import Pod

_SHOWN = 40
"""Characters of a name that is too long."""
_DIGEST = 10
"""Characters that tell shortened names apart."""
_DOMAIN = "-domain-"
_PART = 50
"""Characters of a name, so that it, `_DOMAIN` and a number are a label again."""
_UUIDS = uuid5(NAMESPACE_URL, GANG)


def shorten_gang_name(name: str) -> str:
    """Make a name one that a gang may have: the value of a label."""
    if len(name) <= MAX_LABEL:
        return name
    digest = uuid5(_UUIDS, name).hex[:_DIGEST]
    return f"{name[: MAX_LABEL - _DIGEST - 1].rstrip('-.')}-{digest}"


def name_member(pod_group: str) -> str:
    """Make the name of a PodGroup one that a member may have: a label without dots."""
    if "." not in pod_group:
        return shorten_gang_name(pod_group)
    digest = uuid5(_UUIDS, pod_group).hex[:_DIGEST]
    return f"{pod_group[: MAX_LABEL - _DIGEST - 1].replace('.', '-')}-{digest}"


def name_part(member: str, number: int) -> str:
    """Name the member that a part of a pod set is; the first has its name.

    A pod set that Kueue spread over topology domains has a part in each.
    """
    return member if number == 1 else f"{member[:_PART]}{_DOMAIN}{number}"


def is_part_of(name: str, member: str) -> bool:
    """True if `name` is a later part of a member (`name_part`)."""
    begin, _, number = name.rpartition(_DOMAIN)
    return number.isdecimal() and begin == member[:_PART]


def gang_uid(name: str, generation: int, pods: Iterable[str]) -> GangUID:
    """Derive the uid of a gang from its name (`namespace/name`) and its pods' uids.

    So two publishers submit the same gang, and another generation is another gang.
    """
    text = "/".join((name, str(generation), *sorted(pods)))
    return GangUID(str(uuid5(_UUIDS, text)))


def keep_valid_name(found: Membership, pod: Pod) -> Membership:
    """Return the membership, or that of a lone pod if no gang may have the name."""
    invalid = "" if found.api is None else _check_name(found.group, found.api)
    if not invalid:
        return found
    meta = pod.metadata
    return Membership(
        namespace=meta.namespace,
        group=meta.name,
        is_lone=True,
        member=found.member,
        invalid=invalid,
    )


def _check_name(name: str, api: str) -> str:
    """Return why a gang of an API's pods cannot have this name; empty: it can.

    Source: k8s.io/apimachinery/pkg/util/validation, DNS subdomains.
    """
    path = f"name of the {api} of the pod"
    if len(name) > MAX_SUBDOMAIN:
        # Only the beginning is shown: an annotation has room for a quarter megabyte.
        about = f"must be no more than {MAX_SUBDOMAIN} bytes"
        return f'{path}: Invalid value: "{name[:_SHOWN]}...": {about}'
    return "; ".join(map(str, check_dns_subdomain(name, path)))

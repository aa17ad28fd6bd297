"""The labels, annotations, finalizer, gate and taint by which objects are known.

Stands alone so that every sink, plan and test means the same name.
"""

from __future__ import annotations

from contracts.gang import GANG_LABEL, GANG_UID_ANNOTATION

OURS = "moorings.dev/"
FINALIZER = "resource.kubernetes.io/delete-protection"
"""Without it no controller frees the claim, and it may vanish while in use."""
GANG = GANG_LABEL
"""Label: the gang's name, where it is short enough for a label."""
GANG_UID = GANG_UID_ANNOTATION
MEMBER = "moorings.dev/member"
INDEX = "moorings.dev/index"
VOID = "moorings.dev/void"
"""Annotation of waiting pods: the gangs, and their attempts, that they are not of."""
ATTEMPT = "moorings.dev/attempt"
SOLVE = "moorings.dev/solve"
CLAIM_UID = "moorings.dev/claim-uid"
"""The uid that decisions use for a claim that Kubernetes has not made yet."""
SPEC_FROM = "moorings.dev/spec-from"
"""Where the spec is from when the submission does not hold it."""
SPEC_OMITTED = "moorings.dev/spec-omitted"
"""`true`: nobody on the bus knows the spec; the object must exist to be applied."""
ADOPTED = "moorings.dev/adopted"
"""`true`: the claim was there, unallocated, before the decision."""
OWNED = "moorings.dev/owned"
"""Key of the taint that keeps kube-scheduler away; label of the rules that add it."""
GATE = "moorings.dev/allocation"
"""Scheduling gate: the pod waits until its gang is allocated."""
GANG_SIZE = "moorings.dev/gang-size"
"""Annotation of pods without a Gang object: how many pods the gang has."""
FIELD_MANAGER = "moorings-publisher"
LEASE_NAME = "moorings-publisher"
"""The Lease by which the publishers of a cluster agree who leads."""
MANAGED = "moorings.dev/managed"
"""Annotation of claims: `true`: we set the finalizer and may free what nobody uses."""

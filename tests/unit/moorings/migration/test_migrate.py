"""What is written can be applied to a cluster of v1; the rest is named."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from moorings.migration.migrate import Migration


def _migrate(text: str) -> tuple[list[dict[str, Any]], list[str], int]:
    said: list[str] = []
    migration = Migration(said.append)
    documents = [("f", raw) for raw in yaml.safe_load_all(text)]
    return list(migration.migrate(documents)), said, migration.refused


CLAIM = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata:
  name: c
  namespace: ns
  uid: u
  resourceVersion: "7"
  labels: {team: a}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec: {devices: {requests: [{name: r, deviceClassName: gpu, count: 2}]}}
status: {reservedFor: []}
"""


def test_what_a_cluster_wrote_stays_behind() -> None:
    """It would be refused, or mean an object of another cluster."""
    (value,), said, refused = _migrate(CLAIM)
    assert (said, refused) == ([], 0)
    assert value == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns", "labels": {"team": "a"}},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}
                ]
            }
        },
    }


def test_what_others_make_is_not_written() -> None:
    """A claim of a template comes with its pod, slices with their driver."""
    owned = CLAIM.replace(
        "  uid: u",
        "  ownerReferences: [{kind: Pod, name: p, uid: v, controller: true}]",
    )
    of_driver = """
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: s}
spec: {driver: d.example.com, nodeName: n, pool: {name: n, generation: 1}}
"""
    values, said, refused = _migrate(f"{owned}---{of_driver}")
    assert (values, refused) == ([], 0)
    assert "Pod p makes it" in said[0]
    assert "drivers publish their own" in said[1]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("count: 2", "count: -2"), "count"),
        (("count: 2", "colour: red"), "colour"),
        (("count: 2", "exactly: {}"), "exactly"),
        (("name: r, ", "name: R_, "), "requests[0].name"),
    ],
)
def test_what_the_api_server_would_refuse_is_not_written(
    change: tuple[str, str], word: str
) -> None:
    """It is named here, not when the rest has been applied."""
    values, said, refused = _migrate(CLAIM.replace(*change))
    assert (values, refused) == ([], 1)
    assert said[0].startswith("error: f: ResourceClaim ")
    assert word in said[0]


def test_other_objects_go_through() -> None:
    """Only pods that name their claims below `source` are changed."""
    text = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      resourceClaims: [{name: a, source: {resourceClaimName: c}}]
"""
    (value,), said, _ = _migrate(text)
    assert said == []
    pod = value["spec"]["template"]["spec"]
    assert pod["resourceClaims"] == [{"name": "a", "resourceClaimName": "c"}]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "{apiVersion: cats.example.com/v1, kind: Cat, name: tom}",
            "Cat: name: belongs under metadata",
        ),
        (
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: p}, "
                "spec: {containers: [], ResourceClaim: [{name: a}]}}"
            ),
            "Pod p: spec.ResourceClaim: unknown field",
        ),
    ],
)
def test_misprints_of_the_pages_are_named(text: str, fault: str) -> None:
    """Kubernetes' own examples of 1.30 and 1.31 have both."""
    assert _migrate(text) == ([], [f"error: f: {fault}"], 1)


def test_a_document_that_is_no_object_is_an_error() -> None:
    assert _migrate("- 1")[2] == 1


def test_a_policy_that_will_see_nothing_of_v1_goes_through_with_a_note() -> None:
    written, said, refused = _migrate("""
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-admins}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [resource.k8s.io]
      apiVersions: [v1alpha3, v1beta1]
      operations: [CREATE, UPDATE]
      resources: [resourceclaims]
  validations:
  - expression: "!object.spec.devices.requests.exists(r, has(r.adminAccess))"
""")
    assert [value["metadata"]["name"] for value in written] == ["no-admins"]
    (note,) = said
    assert note.startswith("note: f: ValidatingAdmissionPolicy no-admins does not see")
    assert note.endswith("; add v1 there, and read its fields")
    assert refused == 0


CLASSIC = """
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec: {resourceClassName: gpu}
status:
  allocation: {resourceHandles: [{driverName: d.example.com, data: "{}"}]}
"""


def test_an_allocation_that_is_not_written_is_no_error() -> None:
    """Only the driver can read it, and the claim is allocated anew in v1."""
    (value,), said, refused = _migrate(CLASSIC)
    assert (said, refused) == ([], 0)
    assert "status" not in value


def test_a_claim_that_comes_with_its_pod_cannot_be_refused() -> None:
    """Its template is, once."""
    owner = "ownerReferences: [{kind: Pod, name: p, uid: v, controller: true}]"
    owned = CLASSIC.replace("namespace: ns", f"namespace: ns, {owner}")
    values, said, refused = _migrate(owned.replace("gpu", '""'))
    assert (values, refused) == ([], 0)
    (note,) = said
    assert note.endswith("not written: Pod p makes it")


def test_parameters_that_a_vendor_s_controller_owns_are_read() -> None:
    """They are not written, but what refers to them is."""
    values, _, refused = _migrate("""
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec:
  resourceClassName: gpu
  parametersRef: {apiGroup: cats.example.com, kind: Cat, name: tom}
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaimParameters
metadata:
  name: made
  namespace: ns
  ownerReferences: [{kind: Cat, name: tom, uid: u, controller: true}]
generatedFrom: {apiGroup: cats.example.com, kind: Cat, name: tom}
driverRequests:
- {driverName: d.example.com, requests: [{namedResources: {selector: "true"}}]}
""")
    assert ([value["kind"] for value in values], refused) == (["ResourceClaim"], 0)


@pytest.mark.parametrize(("uid", "node"), [("", "n"), ("uid: u, ", None)])
def test_the_node_that_a_pod_was_bound_to_is_left_out(
    uid: str, node: str | None
) -> None:
    """With it no scheduler sees the pod, so nobody allocates its claims."""
    (value,), _, _ = _migrate(f"""
apiVersion: v1
kind: Pod
metadata: {{{uid}name: p}}
spec: {{nodeName: n}}
""")
    assert value["spec"].get("nodeName") == node


def test_a_job_finds_its_pods_anew() -> None:
    """The API server refuses a selector by the uid of another Job."""
    (value,), _, _ = _migrate("""
apiVersion: batch/v1
kind: Job
metadata: {name: j, uid: u, labels: {team: a, controller-uid: u}}
spec:
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}}
  template:
    metadata: {labels: {batch.kubernetes.io/controller-uid: u, job-name: j}}
    spec: {restartPolicy: Never}
""")
    assert value["metadata"] == {"name": "j", "labels": {"team": "a"}}
    assert value["spec"] == {
        "template": {
            "metadata": {"labels": {"job-name": "j"}},
            "spec": {"restartPolicy": "Never"},
        }
    }

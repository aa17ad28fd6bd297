"""The Helm chart makes the objects that kustomize makes, whatever is chosen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.controlplane.kubectl import build
from tests.lab.helm import program
from tests.lab.manifests import K8S, TOKENS, WORKLOADS, Manifest, write_site

CHART = K8S / "chart"
SCRIPT = K8S.parent / "scripts" / "chart.py"
IMAGE, TAG = "registry.example.com/moorings", "0.1.0-abc"
OWNED = {"drivers": "a.example.com,b.example.com", "classes": "big.example.com"}
HASH = re.compile(r"\b(nats|ownership|sources)-[a-z0-9]{10}\b")
COMPONENTS = tuple(
    name
    for name in yaml.safe_load((CHART / "values.yaml").read_text())["components"]
    if name not in {"simulated", "tokens"}
)
TOGETHER = tuple(
    name for name in COMPONENTS if name not in {"besideNvidia", "scrapeAnnotations"}
)
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "as the site is": ("base", ("tokens",)),
    "with passwords": ("base", ()),
    "simulated": ("overlays/simulated", ("tokens",)),
    **{name: ("base", ("tokens", name)) for name in COMPONENTS},
    "all that go together": ("overlays/simulated", ("tokens", *TOGETHER)),
    "all without tokens": ("base", TOGETHER),
    "beside NVIDIA on one node": ("base", ("tokens", "besideNvidia", "singleNode")),
    "1.35": ("overlays/kubernetes-1.35", ("tokens", "singleNode")),
    "1.34": ("overlays/kubernetes-1.35", ("tokens", "kueue", "nodeNames")),
    "1.33": ("overlays/kubernetes-1.33", ("tokens", "kueue")),
    "1.32": ("overlays/kubernetes-1.33", ()),
}
"""What kustomize is given, by what is chosen."""


def order(folder: str) -> int:
    """Give a component's turn: single-node patches what others brought."""
    return {"tokens": 0, "single-node": 2}.get(folder, 1)


@pytest.fixture(scope="module")
def helm() -> str:
    """The program."""
    found = program.built()
    if found is None:
        pytest.skip(program.NO_HELM)
    return found


def test_templates_are_what_the_script_writes(
    control_plane_programs: Path, tmp_path: Path
) -> None:
    """From the kustomize tree as it is now: `python scripts/chart.py` writes them."""
    command = [sys.executable, str(SCRIPT), str(tmp_path)]
    kubectl = str(control_plane_programs / "kubectl")
    subprocess.run([*command, "--kubectl", kubectl], check=True)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    there = {
        path.name: path.read_text() for path in (CHART / "templates").glob("*.yaml")
    }
    assert there == written


def test_values_know_every_component() -> None:
    """But classic, whose releases the chart refuses, and what others bring along."""
    folders = {path.name for path in (K8S / "components").iterdir()}
    folders -= {"classic", "gangs", "metrics-ingress", "ownership", "tokens"}
    assert {folder_of(name) for name in COMPONENTS} == folders


def folder_of(component: str) -> str:
    """Give the folder of a component from its name in values."""
    return re.sub(r"[A-Z]", lambda found: f"-{found[0].lower()}", component)


def render(helm: str, *options: str, release: str = "1.37.0") -> list[Manifest]:
    """Give the objects of the chart."""
    command = [helm, "template", "moorings", str(CHART), "--kube-version", release]
    image = ("--set", f"image.repository={IMAGE}", "--set", f"image.tag={TAG}")
    said = subprocess.run(
        [*command, *image, *options], check=True, capture_output=True, text=True
    )
    return [thing for thing in yaml.load_all(said.stdout, yaml.CSafeLoader) if thing]


def comparable(objects: list[Manifest]) -> dict[tuple[str, str], Any]:
    """Leave out what may differ: hashes in names, and the order of variables."""
    found = json.loads(HASH.sub(r"\1", json.dumps(objects)))
    for thing in found:
        if thing["kind"] in WORKLOADS:
            (container,) = thing["spec"]["template"]["spec"]["containers"]
            container["env"].sort(key=lambda entry: entry["name"])
    return {(thing["kind"], thing["metadata"]["name"]): thing for thing in found}


@pytest.mark.parametrize("case", CASES)
def test_the_chart_makes_what_kustomize_makes(
    helm: str, control_plane_programs: Path, tmp_path: Path, case: str
) -> None:
    """Object by object and field by field."""
    resources, chosen = CASES[case]
    site = write_site(tmp_path / "site", K8S / resources, OWNED)
    written = yaml.safe_load((site / "kustomization.yaml").read_text())
    written["images"] = [{"name": "moorings", "newName": IMAGE, "newTag": TAG}]
    simulated = resources == "overlays/simulated"
    folders = sorted(map(folder_of, chosen), key=order)
    written["components"] += [
        os.path.relpath(K8S / "components" / name, site)
        for name in folders
        if not (simulated and name == TOKENS.name)
    ]
    (site / "kustomization.yaml").write_text(yaml.safe_dump(written))
    release = case if case.startswith("1.") else "1.37"
    options = [f"components.{name}=true" for name in chosen]
    options += ["components.tokens=false"] if "tokens" not in chosen else []
    options += ["components.simulated=true"] if simulated else []
    for name, listed in OWNED.items():
        options.append(f"owned.{name}={{{listed}}}")

    made = comparable(
        render(helm, *(f"--set={option}" for option in options), release=f"{release}.0")
    )

    expected = comparable(build(control_plane_programs, site))
    assert made.keys() == expected.keys()
    for key, thing in expected.items():
        assert made[key] == thing, key


def test_simulated_devices_are_moorings_alone(helm: str) -> None:
    """As in the overlay, without a list."""
    made = comparable(render(helm, "--set", "components.simulated=true"))
    both = "gpu.moorings.dev,nic.moorings.dev"
    owned = made["ConfigMap", "ownership"]["data"]
    assert owned == {"drivers": both, "classes": both}


def test_variables_of_the_chart_stand_before_what_uses_them(helm: str) -> None:
    """A `$(NAME)` is left as it is where NAME stands behind it."""
    (agent,) = (thing for thing in render(helm) if thing["kind"] == "DaemonSet")
    (container,) = agent["spec"]["template"]["spec"]["containers"]
    names = [entry["name"] for entry in container["env"]]
    assert names.index("NODEAGENT_NODE") < names.index("NODEAGENT_BUS_USER")


def test_what_an_installation_chooses_reaches_its_objects(helm: str) -> None:
    """Namespace, image by digest, secrets to pull it, storage, variables, numbers."""
    digest = f"sha256:{'0' * 64}"
    values = (
        "namespace=devices",
        f"image.digest={digest}",
        "imagePullSecrets[0].name=puller",
        "nats.storage.className=fast",
        "nats.storage.size=5Gi",
        "nats.storage.streams=4GB",
        "solver.replicas=3",
        "solver.env.SOLVER_WORKERS=4",
        "solver.resources.requests.cpu=8",
        r"sources.sources\.yaml=said",
    )
    objects = render(helm, *(f"--set={value}" for value in values))
    made = comparable(objects)
    text = json.dumps(objects)
    assert "moorings-system" not in text
    assert made["Namespace", "devices"]
    solver = made["Deployment", "solver"]["spec"]
    (container,) = solver["template"]["spec"]["containers"]
    assert solver["replicas"] == 3
    assert container["image"] == f"{IMAGE}:{TAG}@{digest}"
    assert container["resources"] == {"requests": {"cpu": 8}}
    assert {"name": "SOLVER_WORKERS", "value": "4"} in container["env"]
    assert solver["template"]["spec"]["imagePullSecrets"] == [{"name": "puller"}]
    (claim,) = made["StatefulSet", "nats"]["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"] == {"requests": {"storage": "5Gi"}}
    assert made["ConfigMap", "sources"]["data"] == {"sources.yaml": "said"}
    assert "max_file: 4GB" in made["ConfigMap", "nats"]["data"]["nats.conf"]


def test_a_release_in_its_own_namespace_does_not_make_it(helm: str) -> None:
    """`--create-namespace` made it; Helm would refuse what it does not own."""
    kinds = {thing["kind"] for thing in render(helm, "-n", "moorings-system")}
    assert "Namespace" not in kinds
    assert "Namespace" in {thing["kind"] for thing in render(helm)}


def test_definitions_come_first_and_stay(helm: str) -> None:
    """The chart's folder crds has those of k8s/crd, which `helm uninstall` leaves."""
    there = render(helm, "--include-crds")
    assert [thing["kind"] for thing in there].count("CustomResourceDefinition") == 1
    assert "CustomResourceDefinition" not in {t["kind"] for t in render(helm)}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("image.repository=", "image.repository: the image that you built and pushed"),
        ("image.repository=REGISTRY/moorings", "image/repository"),
        ("image.tag=TAG", "image/tag"),
        ("components.kueu=true", "kueu"),
        ("solver.replicas=none", "solver/replicas"),
        ("owned.classes={it's}", "owned/classes"),
    ],
)
def test_a_forgotten_or_wrong_value_is_refused(
    helm: str, option: str, said: str
) -> None:
    """Before anything is applied, by its name."""
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render(helm, "--set", option)
    assert said in refused.value.stderr

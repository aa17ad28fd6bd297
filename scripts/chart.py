"""Writes the templates of the Helm chart, k8s/chart, from what kustomize makes of k8s/.

The kustomize tree is the one source. It is built once as it is and once with each
component and older release; where the builds differ, the template asks the values.
Written by hand are values.yaml, values.schema.json, NOTES.txt and _helpers.tpl.
Usage: .venv/bin/python scripts/chart.py [--kubectl PROGRAM] [FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import yaml

K8S = Path(__file__).parents[1] / "k8s"
FOLDER = K8S / "chart" / "templates"
SYSTEM = "moorings-system"
IMAGE, NATS = "moorings:0.1.0", "docker.io/library/nats:2.15.1"
WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet")
COMPONENTS = (
    "kueue",
    "monitoring",
    "scrape-annotations",
    "traces",
    "nic-addresses",
    "node-names",
    "extended-resources",
    "beside-nvidia",
    "new-secrets",
    "single-node",
)
"""What may be switched on, beside `simulated` and `tokens`."""
LONG = 88
"""Characters from which on a text has lines of its own."""
HASHED = re.compile(r"(nats|ownership|sources)-[a-z0-9]{10}")
"""ConfigMaps with a hash of their content in their names."""

Json = Any


class Build(NamedTuple):
    """What kustomize makes of one choice, and the condition of a template for it."""

    condition: str
    objects: dict[tuple[str, str], Json]


class Choice(NamedTuple):
    """A value where it differs from the reference: under which condition, and how."""

    condition: str
    value: Json


class Texts:
    """Template expressions, each behind a word that YAML leaves as it is."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        files = sorted((K8S / "chart" / "files").iterdir())
        self.files = {path.read_text(): f"files/{path.name}" for path in files}
        """Files of the tree that the chart links to, by their texts."""

    def put(self, text: str) -> str:
        """Give the word that stands for an expression."""
        if text not in self._texts:
            self._texts.append(text)
        return f"xTEXT{self._texts.index(text)}x"

    def fill(self, text: str) -> str:
        """Put the expressions in, and let braces of the objects be only braces."""
        text = text.replace(SYSTEM, "{{ .Values.namespace }}")
        text = re.sub(r"xTEXT(\d+)x", lambda found: self._texts[int(found[1])], text)
        text = re.sub(
            r"^ *(?:- name: |- \{name: )xENV(\w+)x\}?$",
            lambda found: (
                f"{{{{- range $name, $value := .Values.{found[1]}.env }}}}\n"
                + " " * found[0].index("-")
                + "- {name: {{ $name }}, value: {{ $value | quote }}}\n{{- end }}"
            ),
            text,
            flags=re.MULTILINE,
        )
        return re.sub(
            r"^( *)(\w+): xIF(\S+)x$",
            r"{{- with .Values.\3 }}\n\1\2: {{ toJson . }}\n{{- end }}",
            text,
            flags=re.MULTILINE,
        )


ABSENT = object()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kubectl", default="kubectl")
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    for path in asked.folder.glob("*.yaml"):
        path.unlink()
    for name, text in write_templates(asked.kubectl).items():
        (asked.folder / name).write_text(text)


def write_templates(kubectl: str) -> dict[str, str]:
    """Return each template's text by its file's name: one object a file."""
    texts = Texts()
    reference, *others = list_builds(kubectl, texts)
    keys = dict.fromkeys(key for build in (reference, *others) for key in build.objects)
    templates = {}
    for kind, name in keys:
        usual = reference.objects.get((kind, name), ABSENT)
        choices = differing(
            usual,
            [Choice(b.condition, b.objects.get((kind, name), ABSENT)) for b in others],
        )
        file = f"{name.partition('.')[0]}-{kind.lower()}.yaml"
        templates[file] = texts.fill(write_object(name, usual, choices))
    return templates


def list_builds(kubectl: str, texts: Texts) -> list[Build]:
    """Build the usual site, then one site for each choice; the later rules less."""
    tokens = (K8S / "components" / "tokens",)
    base, overlays = K8S / "base", K8S / "overlays"

    def made(condition: str, resources: Path, *components: Path) -> Build:
        built = build(kubectl, resources, components)
        return Build(condition, {key_of(each): prepare(each, texts) for each in built})

    older = [
        made(
            f'semverCompare "<1.{minor + 1}.0-0" .Capabilities.KubeVersion.Version',
            overlays / f"kubernetes-1.{minor}",
            *tokens,
        )
        for minor in (33, 35)
    ]
    return [
        made("", base, *tokens),
        *older,
        made("not .Values.components.tokens", base),
        made(".Values.components.simulated", overlays / "simulated"),
        *(
            made(
                f".Values.components.{camel(name)}",
                base,
                *tokens,
                K8S / "components" / name,
            )
            for name in COMPONENTS
        ),
    ]


def camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(word.capitalize() for word in rest)


def build(kubectl: str, resources: Path, components: tuple[Path, ...]) -> list[Json]:
    """Run kustomize on a site that owns what the values say."""
    with tempfile.TemporaryDirectory() as folder:
        owned = {"name": "ownership", "namespace": SYSTEM, "behavior": "replace"}
        site = {
            "resources": [os.path.relpath(resources, folder)],
            "configMapGenerator": [
                {**owned, "literals": ["drivers=xDRIVERSx", "classes=xCLASSESx"]}
            ],
            "components": [
                os.path.relpath(path, folder)
                for path in (K8S / "components" / "ownership", *components)
            ],
        }
        (Path(folder) / "kustomization.yaml").write_text(yaml.safe_dump(site))
        command = [kubectl, "kustomize", folder]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return list(yaml.load_all(said, yaml.CSafeLoader))


def key_of(thing: Json) -> tuple[str, str]:
    name: str = thing["metadata"]["name"]
    hashed = HASHED.fullmatch(name)
    return thing["kind"], hashed[1] if hashed else name


def prepare(thing: Json, texts: Texts) -> Json:
    """Put the values where an object of ours takes one."""
    name = thing["metadata"]["name"]
    if thing["kind"] in WORKLOADS:
        prepare_workload(name, thing["spec"], texts)
    if thing["kind"] in {*WORKLOADS, "Job"}:
        prepare_images(thing["spec"]["template"]["spec"], texts)
    return prepare_text(thing, texts)


def prepare_workload(name: str, spec: Json, texts: Texts) -> None:
    if name in {"authcallout", "publisher", "solver"}:
        number = f".Values.{name}.replicas | default {spec['replicas']}"
        spec["replicas"] = texts.put(action(number))
    for claimed in spec.get("volumeClaimTemplates", ()):
        claimed["spec"]["resources"]["requests"]["storage"] = texts.put(
            action(".Values.nats.storage.size")
        )
        claimed["spec"]["storageClassName"] = "xIFnats.storage.classNamex"
    (container,) = spec["template"]["spec"]["containers"]
    usual = f"fromJson `{json.dumps(container['resources'], sort_keys=True)}`"
    container["resources"] = texts.put(
        action(f".Values.{name}.resources | default ({usual}) | toJson")
    )
    # What a variable uses stands before it: sorted, so that builds are alike.
    container["env"].sort(
        key=lambda each: ("$(" in each.get("value", ""), each["name"])
    )
    container["env"].append({"name": f"xENV{name}x"})


def prepare_images(pod: Json, texts: Texts) -> None:
    """Let a pod have the image of the values, and what it takes to pull it."""
    pod["imagePullSecrets"] = "xIFimagePullSecretsx"
    (container,) = pod["containers"]
    ours = container["image"] == IMAGE
    container["image"] = texts.put(
        action('include "moorings.image" .' if ours else ".Values.nats.image")
    )


def prepare_text(value: Json, texts: Texts) -> Json:
    """Put the values into every text of an object."""
    match value:
        case dict():
            return {key: prepare_text(each, texts) for key, each in value.items()}
        case list():
            return [prepare_text(each, texts) for each in value]
        case str():
            if value in texts.files:
                return texts.put(action(f'.Files.Get "{texts.files[value]}" | toJson'))
            if hashed := HASHED.fullmatch(value):
                name_of = f'include "moorings.nameOf" (list . "{hashed[1]}")'
                return texts.put(action(name_of))
            for what in ("drivers", "classes"):
                word = f"x{what.upper()}x"
                said = f'include "moorings.owned" (list . "{what}")'
                said += " | quote" if value == word else ""
                value = value.replace(word, texts.put(action(said)))
            streams = texts.put(action(".Values.nats.storage.streams"))
            return value.replace("max_file: 18GB", f"max_file: {streams}")
        case _:
            return value


def write_object(name: str, usual: Json, choices: list[Choice]) -> str:
    """Write one object, or nothing where the choices say so."""
    if usual is not ABSENT and "xTEXT" in usual["metadata"]["name"]:
        return write_hashed(name, usual, choices)
    text = write_entry(usual, choices, lambda value, rest: write_value(value, rest, 0))
    if name == SYSTEM:  # the namespace of the release itself is there already
        text = guard("ne .Release.Namespace .Values.namespace", text)
    return text


def write_hashed(name: str, usual: Json, choices: list[Choice]) -> str:
    """Write a ConfigMap, its data apart so that its name can have their hash."""
    others = [Choice(condition, value["data"]) for condition, value in choices]
    data = write_value(usual["data"], differing(usual["data"], others), 0)
    if name == "sources":
        data = (
            f"{{{{- with .Values.sources }}}}\n{action('toYaml .')}\n"
            f"{{{{- else }}}}\n{data}{{{{- end }}}}\n"
        )
    include = f'include "moorings.dataOf.{name}" . | nindent 2'
    text = dump({**usual, "data": "xDATAx"}).replace("xDATAx", f"{{{{- {include} }}}}")
    return f'{{{{- define "moorings.dataOf.{name}" -}}}}\n{data}{{{{- end }}}}\n{text}'


def differing(usual: Json, choices: list[Choice]) -> list[Choice]:
    return [choice for choice in choices if choice.value != usual]


def write_entry(usual: Json, choices: list[Choice], write: Any) -> str:
    """Write what is there or not, under its conditions; `write` writes a value."""
    gone = [choice.condition for choice in choices if choice.value is ABSENT]
    there = [choice for choice in choices if choice.value is not ABSENT]
    if usual is not ABSENT:
        text = write(usual, there)
        if not gone:
            return text
        condition, *more = gone
        return guard(f"not ({either(gone)})" if more else opposite(condition), text)
    if all(choice.value == there[0].value for choice in there):
        condition = either([choice.condition for choice in there])
        return guard(condition, write(there[0].value, []))
    return write_chain([(c, write(value, [])) for c, value in there], "")


def guard(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"


def action(expression: str) -> str:
    return f"{{{{ {expression} }}}}"


def opposite(condition: str) -> str:
    bare = condition.removeprefix("not ")
    return f"not ({condition})" if bare == condition else bare


def either(conditions: list[str]) -> str:
    if len(conditions) == 1:
        return conditions[0]
    return "or " + " ".join(f"({condition})" for condition in conditions)


def write_chain(conditional: list[tuple[str, str]], otherwise: str) -> str:
    text, word = "", "if"
    for condition, body in conditional:
        text += f"{{{{- {word} {condition} }}}}\n{body}"
        word = "else if"
    return (
        text + (f"{{{{- else }}}}\n{otherwise}" if otherwise else "") + "{{- end }}\n"
    )


def write_value(usual: Json, choices: list[Choice], depth: int) -> str:
    """Write an object's field or list, with the choices as deep down as can be."""
    if not choices:
        return indent(dump(usual), depth)
    values = [usual, *(choice.value for choice in choices)]
    if all(isinstance(value, dict) for value in values):
        keys = dict.fromkeys(key for value in values for key in value)
        return "".join(
            write_entry(
                usual.get(key, ABSENT),
                differing(
                    usual.get(key, ABSENT),
                    [Choice(c, value.get(key, ABSENT)) for c, value in choices],
                ),
                lambda value, rest, key=key: write_field(key, value, rest, depth),
            )
            for key in keys
        )
    if all(is_named(value) for value in values):
        named = [{each["name"]: each for each in value} for value in values]
        names = dict.fromkeys(name for value in named for name in value)
        ordered = sorted(names, key=lambda name: name.startswith("xENV"))
        return "".join(
            write_entry(
                named[0].get(name, ABSENT),
                differing(
                    named[0].get(name, ABSENT),
                    [
                        Choice(choice.condition, value.get(name, ABSENT))
                        for choice, value in zip(choices, named[1:], strict=True)
                    ],
                ),
                lambda value, rest: write_item(value, rest, depth),
            )
            for name in ordered
        )
    return write_chain(
        [(c, indent(dump(value), depth)) for c, value in choices],
        indent(dump(usual), depth),
    )


def write_field(key: str, value: Json, choices: list[Choice], depth: int) -> str:
    if not choices:
        return indent(dump({key: value}), depth)
    values = [value, *(choice.value for choice in choices)]
    if all(isinstance(each, dict) for each in values):
        inner = write_value(value, choices, depth + 2)
        return f"{' ' * depth}{key}:\n{inner}"
    if all(isinstance(each, list) for each in values):
        return f"{' ' * depth}{key}:\n{write_value(value, choices, depth)}"
    return write_chain(
        [(c, indent(dump({key: each}), depth)) for c, each in choices],
        indent(dump({key: value}), depth),
    )


def write_item(value: Json, choices: list[Choice], depth: int) -> str:
    """Write an item with a name, which is its first line."""
    if not choices:
        return indent(dump([value]), depth)
    rest = {key: each for key, each in value.items() if key != "name"}
    others = [
        Choice(c, {key: each for key, each in one.items() if key != "name"})
        for c, one in choices
    ]
    name = dump({"name": value["name"]})
    return f"{' ' * depth}- {name}{write_value(rest, others, depth + 2)}"


def is_named(value: Json) -> bool:
    """True if each item of a list has a name of its own."""
    if not isinstance(value, list) or not all(isinstance(e, dict) for e in value):
        return False
    names = [each.get("name") for each in value]
    return None not in names and len(set(names)) == len(names)


class Dumper(yaml.SafeDumper):
    """Writes long texts as they are, without quotes."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of its base
        """Write what is there twice twice."""
        return True

    def represent(self, data: Any) -> None:
        """Give what is outermost a line for each entry."""
        node = self.represent_data(data)
        if isinstance(node, yaml.CollectionNode):
            node.flow_style = False
        self.serialize(node)


def _write_text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text or len(text) > LONG else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _write_text)


def dump(value: Json) -> str:
    """Write a value as YAML in which braces are only braces."""
    text: str = yaml.dump(
        value, Dumper=Dumper, width=1_000_000, sort_keys=False, default_flow_style=None
    )
    return text.replace("{{", '{{ "{{" }}')


def indent(text: str, depth: int) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(" " * depth + line if line.strip() else line for line in lines)


if __name__ == "__main__":
    main()

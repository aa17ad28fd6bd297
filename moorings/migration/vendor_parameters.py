"""Runs the command that says a vendor's parameters in the words of v1alpha2.

It reads one custom resource as JSON and writes the ResourceClaimParameters or
ResourceClassParameters that the vendor's controller would have made of it. [io]
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from contracts.alpha.claims import (
    CLAIM_PARAMETERS,
    CLASS_PARAMETERS,
    DEFAULT,
    ParametersKey,
    find_origin,
    find_reference,
)
from contracts.alpha.convert import V1ALPHA2
from contracts.alpha.said import Json, mapping_in, subject_of, text_in
from moorings.errors import BadInputError

TIMEOUT_S = 60.0
_MOST_WORDS = 300
"""Characters of a command's standard error that are shown."""


def convert_parameters(
    documents: Iterable[tuple[str, Any]], command: list[str]
) -> Iterator[tuple[str, Any]]:
    """Replace each custom resource that is referred to by what a command makes of it.

    Those that the vendor's controller made parameters of are left as they are.

    Raises:
        BadInputError: the command fails, or writes something else.
    """
    held = list(documents)
    old = [
        raw
        for _, raw in held
        if isinstance(raw, dict) and raw.get("apiVersion") == V1ALPHA2
    ]
    wanted = set(map(find_reference, old)) - set(map(find_origin, old))
    for source, raw in held:
        key = _key_of(raw) if isinstance(raw, dict) else None
        if key is not None and key in wanted:
            yield source, _run(command, source, raw, key)
        else:
            yield source, raw


def _key_of(raw: Json) -> ParametersKey:
    group = text_in(raw, "apiVersion").rpartition("/")[0]
    metadata = mapping_in(raw, "metadata")
    names = text_in(metadata, "namespace") or DEFAULT, text_in(metadata, "name")
    return group, text_in(raw, "kind"), *names


def _run(command: list[str], source: str, raw: Json, key: ParametersKey) -> Json:
    what = f"{source}: {subject_of(raw)}"
    try:
        done = subprocess.run(  # noqa: S603  # the user's own command
            command,
            input=json.dumps(raw).encode(),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except OSError as error:
        raise BadInputError(command[0], str(error.strerror)) from error
    except subprocess.TimeoutExpired as error:
        text = f"{command[0]} did not end within {TIMEOUT_S:.0f} s"
        raise BadInputError(what, text) from error
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()[:_MOST_WORDS]
        text = f"{command[0]} exited with {done.returncode}: {words}"
        raise BadInputError(what, text.rstrip(": "))
    try:
        made = yaml.safe_load(done.stdout)
    except yaml.YAMLError as error:
        text = f"{command[0]} wrote no YAML or JSON"
        raise BadInputError(what, text) from error
    kinds = (CLAIM_PARAMETERS, CLASS_PARAMETERS)
    if not isinstance(made, dict) or made.get("kind") not in kinds:
        text = f"{command[0]} wrote no {' or '.join(kinds)}"
        raise BadInputError(what, text)
    group, kind, namespace, name = key
    made_from = {"apiGroup": group, "kind": kind, "name": name}
    made_from["namespace"] = namespace
    metadata = {"name": name, "namespace": namespace}
    return {
        **made,
        "apiVersion": V1ALPHA2,
        "metadata": metadata | mapping_in(made, "metadata"),
        "generatedFrom": made_from,
    }

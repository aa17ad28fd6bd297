"""Documents of YAML or JSON, as people write them, from a text. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from contracts.errors import ContractsError
from contracts.gang import Gang
from contracts.kubernetes.decode import decode_object, flatten
from moorings.errors import BadInputError


class _Loader(yaml.CSafeLoader):
    """YAML without timestamps: Kubernetes keeps them as text."""


_Loader.yaml_implicit_resolvers = {
    key: [(tag, pattern) for tag, pattern in tags if not tag.endswith(":timestamp")]
    for key, tags in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def parse_documents(source: str, text: str) -> Iterator[tuple[str, Any]]:
    """Go through all documents: (source, parsed object); Lists are taken apart.

    Raises:
        BadInputError: the text is no YAML or JSON.
    """
    try:
        documents = yaml.load_all(text, _Loader)  # a safe loader
        for number, document in enumerate(documents, start=1):
            if document is not None:
                where = f"{source}, document {number}" if number > 1 else source
                yield from ((where, value) for value in flatten(document))
    except (yaml.YAMLError, ContractsError) as error:
        reason = " ".join(str(error).split())
        raise BadInputError(source, reason) from error


def read_gang(source: str, raw: Any) -> tuple[str, Gang]:
    """Read a Gang; returned with its source.

    Raises:
        BadInputError: the document is no Gang.
    """
    try:
        value = decode_object(raw).value
    except ContractsError as error:
        raise BadInputError(source, str(error)) from error
    if not isinstance(value, Gang):
        raise BadInputError(source, f"expected a Gang, got {raw.get('kind')}")
    return source, value

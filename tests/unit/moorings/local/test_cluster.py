"""The way to a cluster is read, or what is wrong with it named, before all else."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorings.errors import BadInputError
from moorings.local.cluster import read_access

CONFIG = """
current-context: one
contexts:
- {name: one, context: {cluster: first}}
- {name: two, context: {cluster: second}}
clusters:
- {name: first, cluster: {server: "https://first"}}
"""


def test_a_context_names_its_server(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG)
    access = read_access(file)
    assert (access.context, access.server) == ("one", "https://first")
    assert access.kubeconfig == file.resolve()


@pytest.mark.parametrize(
    ("text", "context", "reason"),
    [
        (CONFIG, "three", "has no context 'three'; it has one, two"),
        (CONFIG, "two", "context 'two' is of cluster 'second', which has no server"),
        (CONFIG.replace("current-context: one", ""), "", "choose one with --context"),
        ("{}", "", "is not a kubeconfig"),
        ("[1]", "", "is not a kubeconfig"),
        ("a: [", "", "while parsing"),
    ],
)
def test_what_is_wrong_is_one_line(
    tmp_path: Path, text: str, context: str, reason: str
) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(BadInputError, match=reason) as caught:
        read_access(file, context)
    assert "\n" not in str(caught.value)


def test_a_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="No such file"):
        read_access(tmp_path / "none")

"""Files of settings are read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeagent.errors import SettingsError
from nodeagent.sources.settings import (
    MAX_CHARACTERS,
    SettingsPart,
    read_settings,
    read_text,
)


class Box(SettingsPart, frozen=True, kw_only=True):
    """A part with a part."""

    size: int
    inner: dict[str, int] = {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("size: 1\nsize: 2", "line 2: is not YAML: the key 'size' appears twice"),
        ("size: 1\ninner: {a: 1, b: 2, a: 3}", "the key 'a' appears twice"),
        ("size: 1\ninner: &x {a: 1}\nother: *x", "aliases"),
        ("size: [", "is not YAML"),
        ("size: one", "size: Expected `int`, got `str`"),
        ("size: 1\ncolour: red", "unknown field `colour`"),
        ("{}", "missing required field `size`"),
        ("[" * 100_000, "is not YAML"),
        ("size: !!python/object/apply:os.getcwd []", "is not YAML"),
        (" " * (MAX_CHARACTERS + 1), "has more than"),
    ],
)
def test_what_is_not_plain_is_refused(text: str, said: str) -> None:
    """With the file, and where in it."""
    with pytest.raises(SettingsError) as caught:
        read_settings(text, "box.yaml", Box)
    assert str(caught.value).startswith("box.yaml: ")
    assert said in str(caught.value)


def test_what_is_plain_is_read() -> None:
    """Keys in camelCase, as in every file of ours."""
    assert read_settings("{size: 1, inner: {a: 2}}", "f", Box) == Box(
        size=1, inner={"a": 2}
    )


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    """Only as much as it takes to refuse it."""
    file = tmp_path / "huge"
    file.write_text("x" * (3 * MAX_CHARACTERS))
    assert len(read_text(file)) == MAX_CHARACTERS + 1


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    """As one that is not there."""
    file = tmp_path / "bytes"
    file.write_bytes(b"\xff\xfe")
    for name in (file, tmp_path / "none"):
        with pytest.raises(SettingsError, match=f"{name}: cannot be read"):
            read_text(name)

"""Stages are told to whoever listens, and to nobody else."""

from __future__ import annotations

from solver.stages import stage, told_to


class Told:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def begin(self, name: str) -> None:
        """Keep the name."""
        self.words.append(name)

    def end(self) -> None:
        """Keep that it ended."""
        self.words.append("end")


def test_stages_lie_in_each_other() -> None:
    told = Told()
    with told_to(told), stage("model"), stage("solve"):
        pass
    assert told.words == ["model", "solve", "end", "end"]


def test_nobody_is_told_after_the_block() -> None:
    told = Told()
    with told_to(told):
        pass
    with stage("model"):
        pass
    assert told.words == []


def test_a_stage_that_fails_ends() -> None:
    told = Told()
    try:
        with told_to(told), stage("model"):
            raise ValueError  # noqa: TRY301 # what is tested
    except ValueError:
        pass
    assert told.words == ["model", "end"]

"""Whatever bytes anybody sends, each reader takes them or refuses them, and soon.

Drawn from the types of all messages and objects, and broken: 300 in `make test`, by one
seed; 10,000 in `make soak`, by a seed that is printed (MOORINGS_SEED tries one again).
"""

from __future__ import annotations

import os
import secrets
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from contracts.codec import encode
from contracts.errors import ContractsError
from contracts.topics import TOPICS
from solver.cel.evaluator import SelectorEvaluator
from tests.draw.broken import RAW, break_json
from tests.lab import broken_readers
from tests.lab.soak import SOAK, sized

COUNT = sized(300, 10_000)
SEED = os.environ.get("MOORINGS_SEED", secrets.token_hex(4) if SOAK else "36")
MOST_CPU_S = 2.0
"""Of one reader for one thing that it is handed; an idle machine needs a second."""


@pytest.fixture(scope="module")
def evaluator() -> Iterator[SelectorEvaluator]:
    with SelectorEvaluator() as evaluator:
        yield evaluator


def test_no_reader_falls_over_what_is_broken(
    evaluator: SelectorEvaluator, tmp_path: Path
) -> None:
    readers = broken_readers.readers(evaluator)
    failures: list[str] = []
    costliest_s, costliest = 0.0, ""
    for number in range(COUNT):
        read = readers[number % len(readers)]
        name = f"{SEED}-{number} {read.__name__}"
        began_s = time.process_time()
        mistakes: list[str] = []
        with broken_readers.catch_mistakes(mistakes):
            try:
                read(Random(f"{SEED}-{number}"), tmp_path)
            except Exception:  # noqa: BLE001 # each is told, with its number
                mistakes.append(traceback.format_exc(limit=-4)[-900:])
        took_s = time.process_time() - began_s
        if took_s > costliest_s:
            costliest_s, costliest = took_s, name
        if took_s > MOST_CPU_S:
            mistakes.append(f"took {took_s:.1f} s")
        failures += [f"{name}: {mistake}" for mistake in mistakes]
    print(f"seed {SEED}: {COUNT} read, {costliest_s:.2f} s at most: {costliest}")  # noqa: T201 # which seed to try again
    assert not failures, f"{len(failures)} of {COUNT}\n" + "\n".join(failures[:40])


def test_what_is_broken_was_right_before() -> None:
    """Or readers would refuse it at its first byte, and nothing behind were tried."""
    read: Counter[str] = Counter()
    for number in range(80 * len(TOPICS)):
        topic, said = broken_readers.any_message(Random(number))
        names = tuple(
            str(said.get(name, broken_readers.NAMES[name])) for name in topic.names
        )
        data = encode(said)
        try:
            topic.decode(names, data)
        except ContractsError:
            continue
        read[topic.entity] += 1
    assert set(read) == {topic.entity for topic in TOPICS}


def test_every_form_of_breaking_is_drawn() -> None:
    value = {"a": {"b": [1, "c"]}, "d": None}
    drawn = [break_json(value, Random(n), lambda: {"e": 1}) for n in range(3_000)]
    assert all(any(raw in data for data in drawn) for raw in RAW)

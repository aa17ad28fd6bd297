"""The objects that a command is given, read as far as they can be."""

from __future__ import annotations

from collections.abc import Iterable

from moorings.cli.documents import read_documents
from moorings.cli.output import notice
from moorings.errors import InputError
from moorings.plan.reading import Reader
from moorings.plan.work import PlanObject


def read_objects(names: Iterable[str]) -> tuple[list[PlanObject], bool]:
    """Read all that can be read; the rest is named on standard error.

    Gives the objects, and whether anything could not be read.
    """
    reader, found, failed = Reader(notice), list[PlanObject](), False
    for name in names:
        try:
            found.extend(reader.read(read_documents([name])))
        except InputError as error:
            notice(f"error: {error}")
            failed = True
    return found, failed or reader.refused > 0

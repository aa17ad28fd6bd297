"""All metrics that the code has, as it declares them; what a service answers."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator

from msgspec import Struct
from prometheus_client import Metric
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from runtime.metrics import WORK_AT_HAND

SERVICES = {
    "runtime.metrics": "all",
    "solver.service.metrics": "solver",
    "publisher.metrics": "publisher",
    "nodeagent.metrics": "nodeagent",
    "nodeagent.kubelet.metrics": "nodeagent",
    "authcallout.metrics": "authcallout",
}
"""The modules that declare metrics, and whose they are."""


class Declared(Struct, frozen=True, order=True):
    """A metric as it is declared."""

    name: str
    kind: str
    labels: tuple[str, ...]
    service: str
    help: str

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its series."""
        if self.kind != "histogram":
            return (self.name,)
        return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))


def list_declared() -> tuple[Declared, ...]:
    """List the metrics of all modules, sorted."""
    at_hand = (
        _declared(family, family._labelnames, "all")  # type: ignore[attr-defined]
        for family in WORK_AT_HAND.collect()
    )
    return tuple(sorted((*_list_declared(), *at_hand)))


def _list_declared() -> Iterator[Declared]:
    for module, service in SERVICES.items():
        for value in vars(importlib.import_module(module)).values():
            if isinstance(value, MetricWrapperBase):
                (family,) = value.describe()
                yield _declared(family, value._labelnames, service)


def _declared(family: Metric, labels: tuple[str, ...], service: str) -> Declared:
    suffix = "_total" if family.type == "counter" else ""
    return Declared(
        f"{family.name}{suffix}",
        family.type,
        tuple(labels),
        service,
        family.documentation,
    )


class Scraped(dict[tuple[str, frozenset[tuple[str, str]]], float]):
    """The series of one answer by name and labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self[sample.name, frozenset(sample.labels.items())] = sample.value

    def of(self, name: str, /, **labels: str) -> float:
        """Add up the series of a name that have these labels."""
        wanted = labels.items()
        return sum(
            value
            for (known, found), value in self.items()
            if known == name and wanted <= set(found)
        )


async def scrape(address: str) -> Scraped:
    """Ask a service for its metrics."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    assert " 200 " in head.partition("\r\n")[0], head
    return Scraped(body)

"""ResourceClaimParameters and ResourceClassParameters of v1alpha2 -> parts of v1.

Source: k8s.io/api v0.30 resource/v1alpha2; the scheduler of 1.30 for what is meant
where there are none (pkg/scheduler/framework/plugins/dynamicresources).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from contracts.alpha.said import (
    Json,
    Remarks,
    list_in,
    mapping_in,
    text_in,
    without_unset,
)
from contracts.alpha.selectors import SelectorError, translate_selector


def devices_of_claim(class_name: str, parameters: Json, remarks: Remarks) -> Json:
    """Say what the parameters of a claim ask for as `spec.devices`.

    Without any, `{}`, a claim asks for one device of its class.
    """
    if not parameters:
        return {"requests": [_request("req-0", class_name, [])]}
    requests: list[Json] = []
    config: list[Json] = []
    for at, of_driver in enumerate(list_in(parameters, "driverRequests")):
        driver = text_in(of_driver, "driverName")
        place = f"driverRequests[{at}]"
        names = []
        for index, asked in enumerate(list_in(of_driver, "requests")):
            name = f"req-{len(requests)}"
            names.append(name)
            where = f"{place}.requests[{index}]"
            selectors = _selectors(asked, driver, where, remarks)
            requests.append(_request(name, class_name, selectors))
            config += _opaque(driver, asked, "vendorParameters", [name])
        config += _opaque(driver, of_driver, "vendorParameters", names)
    return without_unset({"requests": requests, "config": config})


def name_drivers(parameters: Json) -> Iterator[tuple[str, str]]:
    """Yield the drivers that the parameters of a claim ask, each with its field."""
    for at, of_driver in enumerate(list_in(parameters, "driverRequests")):
        yield f"driverRequests[{at}].driverName", text_in(of_driver, "driverName")


def filters_of_class(parameters: Json, remarks: Remarks) -> list[Json]:
    """Say the filters of a class as selectors; each counts for its driver only."""
    selectors = []
    for at, found in enumerate(list_in(parameters, "filters")):
        driver = text_in(found, "driverName")
        for selector in _selectors(found, driver, f"filters[{at}]", remarks):
            expression = selector["cel"]["expression"]
            expression = f'device.driver != "{driver}" || ({expression})'
            selectors.append({"cel": {"expression": expression}})
    return selectors


def config_of_class(parameters: Json) -> list[Json]:
    """Say a vendor's parameters of a class as its `config`."""
    return [
        config
        for found in list_in(parameters, "vendorParameters")
        for config in _opaque(text_in(found, "driverName"), found, "parameters", [])
    ]


def selector_of_driver(driver: str) -> Json:
    """Select the devices of a driver."""
    return {"cel": {"expression": f'device.driver == "{driver}"'}}


def _request(name: str, class_name: str, selectors: list[Json]) -> Json:
    exactly = {"deviceClassName": class_name, "selectors": selectors}
    return {"name": name, "exactly": without_unset(exactly)}


def _selectors(asked: Any, driver: str, place: str, remarks: Remarks) -> list[Json]:
    """Translate the selector of a request or a filter; none if it takes any device."""
    field = f"{place}.namedResources"
    if not isinstance(asked, dict) or "namedResources" not in asked:
        remarks.refuse(field, "required: it is the only model that v1alpha2 has")
        return []
    try:
        text = text_in(mapping_in(asked, "namedResources"), "selector")
        expression = translate_selector(text, driver)
    except SelectorError as error:
        remarks.refuse(f"{field}.selector", str(error))
        return []
    return [{"cel": {"expression": expression}}] if expression else []


def _opaque(driver: str, holder: Any, field: str, requests: list[str]) -> list[Json]:
    """Say what only a driver reads, of some requests."""
    parameters = holder.get(field) if isinstance(holder, dict) else None
    if not parameters:
        return []
    opaque = {"driver": driver, "parameters": parameters}
    return [without_unset({"requests": requests, "opaque": opaque})]

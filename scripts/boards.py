"""Writes the Grafana boards of k8s/components/monitoring from what is said here.

Each board is a list of panels, a panel a title, a unit, what it means and its queries.
Usage: .venv/bin/python scripts/boards.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "k8s" / "components" / "monitoring" / "boards"
SCHEMA = 39
"""Of Grafana 10 and newer, which bring older ones up to date by themselves."""
WIDTH, HEIGHT, ACROSS = 12, 8, 2
SOURCE = {"type": "prometheus", "uid": "${source}"}
SHARE, SECONDS, BYTES, NUMBER, RATE = "percentunit", "s", "bytes", "short", "ops"


class Panel(NamedTuple):
    """One graph."""

    title: str
    unit: str
    meaning: str
    queries: dict[str, str]
    """What is drawn, by its legend."""


def rate(series: str, *by: str) -> str:
    """Events a second."""
    return f"sum by ({', '.join(by)}) (rate({series}[$__rate_interval]))"


def quantile(share: float, series: str, *by: str) -> str:
    """Give a quantile of a histogram."""
    buckets = rate(f"{series}_bucket", "le", *by)
    if "{" in series:
        name, _, labels = series.partition("{")
        buckets = rate(f"{name}_bucket{{{labels}", "le", *by)
    return f"histogram_quantile({share}, {buckets})"


DEVICES, NODES = "moorings_class_devices", "moorings_class_nodes"
GANG = "moorings_gang_stage_duration_seconds"
STAGE = "moorings_solve_stage_duration_seconds"
DRA = "moorings_dra_operations_duration_seconds"

FLEET = (
    Panel(
        "Utilisation",
        SHARE,
        "Devices of a class that are held, of all that it has.",
        {
            "{{device_class}}": f'sum by (device_class) ({DEVICES}{{state=~"held.*"}})'
            f" / sum by (device_class) ({DEVICES})"
        },
    ),
    Panel(
        "Devices by state",
        NUMBER,
        "Each device of a class is in one state.",
        {"{{device_class}} {{state}}": f"sum by (device_class, state) ({DEVICES})"},
    ),
    Panel(
        "Fragmentation",
        SHARE,
        "Free devices that are not on a node with eight free ones: lost to pods that"
        " want eight.",
        {
            "{{device_class}}": f"1 - 8 * sum by (device_class) ({NODES}"
            f'{{free="8"}}) / (sum by (device_class) ({DEVICES}{{state="free"}}) > 0)'
        },
    ),
    Panel(
        "What is free, by shape",
        NUMBER,
        "Nodes with so many free devices of a class, or more.",
        {"{{device_class}} {{free}} or more": f"sum by (device_class, free) ({NODES})"},
    ),
    Panel(
        "Nodes",
        NUMBER,
        "Nodes by whether their agent is heard.",
        {"{{state}}": "sum by (state) (moorings_nodes)"},
    ),
    Panel(
        "Devices of others",
        NUMBER,
        "Devices that kube-scheduler gives, by driver.",
        {"{{driver}}": "max by (driver) (moorings_foreign_devices)"},
    ),
)
GANGS = (
    Panel(
        "Waiting, by reason",
        NUMBER,
        "Gangs that wait, by the first reason that they were told.",
        {"{{reason}}": "sum by (reason) (moorings_gangs_waiting)"},
    ),
    Panel(
        "Gangs by phase",
        NUMBER,
        "All gangs that are known, also those that ended lately.",
        {"{{phase}}": "sum by (phase) (moorings_gangs)"},
    ),
    Panel(
        "Oldest waiting",
        SECONDS,
        "How long the oldest waiting gang has been waiting.",
        {"oldest": "max(moorings_oldest_waiting_seconds)"},
    ),
    Panel(
        "Nodes that are lacking",
        NUMBER,
        "Nodes that would let waiting gangs in, each gang by itself, by shape.",
        {"{{shape}}": "sum by (shape) (moorings_nodes_lacking)"},
    ),
    Panel(
        "Latency by stage, 99 of 100",
        SECONDS,
        "From submission to a first decision and to devices; from the decision to what"
        " is written, to open gates, to bound pods.",
        {"{{stage}}": quantile(0.99, GANG, "stage")},
    ),
    Panel(
        "First decision by queue, 99 of 100",
        SECONDS,
        "From submission to the first answer, by namespace.",
        {"{{queue}}": quantile(0.99, f'{GANG}{{stage="decision"}}', "queue")},
    ),
    Panel(
        "Decisions",
        RATE,
        "Gangs decided a second, by verdict; and decisions that did not come about.",
        {
            "{{verdict}}": rate("moorings_decisions_total", "verdict"),
            "{{kind}}": rate("moorings_placements_voided_total", "kind"),
        },
    ),
    Panel(
        "Writes",
        RATE,
        "Writes to the API server a second, by purpose and result.",
        {"{{purpose}} {{result}}": rate("moorings_writes_total", "purpose", "result")},
    ),
    Panel(
        "Publisher's queue",
        NUMBER,
        "Groups of pods that are to be looked at, and how many are put back a second.",
        {
            "depth": 'sum(workqueue_depth{name="groups"})',
            "retries": rate('workqueue_retries_total{name="groups"}', "name"),
        },
    ),
)
SOLVER = (
    Panel(
        "Time by stage",
        SHARE,
        "Seconds of each second that a stage takes.",
        {"{{stage}}": rate(f"{STAGE}_sum", "stage")},
    ),
    Panel(
        "Stage of a batch, 99 of 100",
        SECONDS,
        "What a stage of one batch takes.",
        {"{{stage}}": quantile(0.99, STAGE, "stage")},
    ),
    Panel(
        "Gap to the bound, 9 of 10",
        SHARE,
        "How far a tier of the objective is from what no answer exceeds; 0: best.",
        {"{{tier}}": quantile(0.9, "moorings_solve_gap_ratio", "tier")},
    ),
    Panel(
        "Engines",
        RATE,
        "Batches a second, by engine and by how far they are proven.",
        {"{{engine}} {{status}}": rate("moorings_solves_total", "engine", "status")},
    ),
    Panel(
        "Gangs in a batch",
        NUMBER,
        "The median, and one of 100.",
        {
            "median": quantile(0.5, "moorings_batch_gangs"),
            "99 of 100": quantile(0.99, "moorings_batch_gangs"),
        },
    ),
    Panel(
        "Queue",
        NUMBER,
        "Gangs that are lined up, and how many are added a second.",
        {
            "depth": 'sum(workqueue_depth{name="gangs"})',
            "added": rate('workqueue_adds_total{name="gangs"}', "name"),
        },
    ),
    Panel(
        "What went wrong",
        RATE,
        "Batches that failed, workers started again, sandboxes ended, a second.",
        {
            "batches": "sum(rate(moorings_batches_failed_total[$__rate_interval]))",
            "workers": "sum(rate(moorings_worker_restarts_total[$__rate_interval]))",
            "sandboxes": "sum(rate(moorings_sandbox_kills_total[$__rate_interval]))",
        },
    ),
    Panel(
        "Room of the streams",
        SHARE,
        "Bytes of a stream, of those that it may take.",
        {
            "{{stream}}": "max by (stream) (moorings_stream_bytes)"
            " / max by (stream) (moorings_stream_limit_bytes > 0)"
        },
    ),
    Panel(
        "Lag",
        NUMBER,
        "Messages that are stored and not read yet, of the slowest reader.",
        {"{{stream}}": "max by (stream) (moorings_stream_lag_messages)"},
    ),
    Panel(
        "Leaders",
        NUMBER,
        "Processes that lead; one of each is right.",
        {"{{name}}": "sum by (name) (leader_election_master_status)"},
    ),
)
NODE = (
    Panel(
        "Devices by health",
        NUMBER,
        "As the node agents judge their readings.",
        {"{{driver}} {{health}}": "sum by (driver, health) (moorings_devices)"},
    ),
    Panel(
        "Drift",
        NUMBER,
        "Devices that run otherwise than was decided.",
        {"{{kind}}": "sum by (kind) (moorings_drift_devices)"},
    ),
    Panel(
        "Preparing claims, 99 of 100",
        SECONDS,
        "What preparing and unpreparing one claim takes.",
        {
            "{{driver}} {{operation_name}}": quantile(
                0.99, DRA, "driver", "operation_name"
            )
        },
    ),
    Panel(
        "Claims that fail",
        RATE,
        "Claims a second that could not be prepared or unprepared.",
        {
            "{{driver}} {{operation_name}}": rate(
                f'{DRA}_count{{is_error="true"}}', "driver", "operation_name"
            )
        },
    ),
    Panel(
        "Prepared claims",
        NUMBER,
        "Claims that are prepared, by driver.",
        {"{{driver}}": "sum by (driver) (moorings_dra_prepared_claims)"},
    ),
    Panel(
        "Announcements",
        RATE,
        "Announcements a second that said something new.",
        {"changed": "sum(rate(moorings_announcements_total[$__rate_interval]))"},
    ),
)


def slowest(series: str, *by: str, over: str = "rate") -> str:
    """Give what 99 of 100 take at most, over five minutes."""
    name, brace, labels = series.partition("{")
    buckets = f"{over}({name}_bucket{brace}{labels}[5m])"
    return f"histogram_quantile(0.99, sum by ({', '.join(('le', *by))}) ({buckets}))"


CLAIMS, OF_KUBELET = '{name="resource_claim"}', "dra_operations_duration_seconds"
OF_DRIVER = "dra_grpc_operations_duration_seconds"
KUBERNETES = (
    Panel(
        "Claims to look at",
        RATE,
        "ResourceClaims a second that kube-controller-manager's controller is given:"
        " it makes those of templates and frees what nobody uses.",
        {"added": f"sum(rate(workqueue_adds_total{CLAIMS}[5m]))"},
    ),
    Panel(
        "Claims that wait for it",
        NUMBER,
        "Few added and long work: raise its QPS and burst. Many added and short work:"
        " give it more workers, or create fewer pods a second.",
        {"waiting": f"sum(workqueue_depth{CLAIMS})"},
    ),
    Panel(
        "Looking at one, 99 of 100",
        SECONDS,
        "Long: the API server is slow, or the client limits are low.",
        {"work": slowest(f"workqueue_work_duration_seconds{CLAIMS}")},
    ),
    Panel(
        "From queue to node, 99 of 100",
        SECONDS,
        "Of all pods, without the time at gates; claims of templates are in it.",
        {
            "scheduling": slowest(
                "scheduler_pod_scheduling_sli_duration_seconds", over="increase"
            )
        },
    ),
    Panel(
        "Choosing a node, 99 of 100",
        SECONDS,
        "What kube-scheduler computes. If this is short and the one before long, its"
        " QPS and burst are too low.",
        {
            "algorithm": slowest(
                "scheduler_scheduling_algorithm_duration_seconds", over="increase"
            )
        },
    ),
    Panel(
        "Preparing claims in kubelet, 99 of 100",
        SECONDS,
        "All claims of a pod, with everything that kubelet does for them.",
        {
            "prepare": slowest(f'{OF_KUBELET}{{operation_name="PrepareResources"}}'),
            "unprepare": slowest(
                f'{OF_KUBELET}{{operation_name="UnprepareResources"}}'
            ),
        },
    ),
    Panel(
        "Calls of drivers by kubelet, 99 of 100",
        SECONDS,
        "What a driver takes. The rest of what kubelet takes is its own.",
        {
            "{{driver_name}} prepare": slowest(
                f'{OF_DRIVER}{{method_name=~".*NodePrepareResources"}}', "driver_name"
            ),
            "{{driver_name}} unprepare": slowest(
                f'{OF_DRIVER}{{method_name=~".*NodeUnprepareResources"}}',
                "driver_name",
            ),
        },
    ),
)
BOARDS = {
    "fleet": FLEET,
    "gangs": GANGS,
    "solver": SOLVER,
    "node": NODE,
    "kubernetes": KUBERNETES,
}


def make_board(name: str, panels: tuple[Panel, ...]) -> dict[str, Any]:
    """Make a board as Grafana reads it."""
    source = {"name": "source", "type": "datasource", "query": "prometheus"}
    return {
        "uid": f"moorings-{name}",
        "title": f"Moorings / {name}",
        "tags": ["moorings"],
        "schemaVersion": SCHEMA,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [_make_panel(index, panel) for index, panel in enumerate(panels)],
    }


def _make_panel(index: int, panel: Panel) -> dict[str, Any]:
    x, y = index % ACROSS * WIDTH, index // ACROSS * HEIGHT
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.meaning,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expr, "legendFormat": legend}
            for number, (legend, expr) in enumerate(panel.queries.items())
        ],
    }


def main() -> None:
    """Write all boards."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, panels in BOARDS.items():
        text = json.dumps(make_board(name, panels), indent=1) + "\n"
        (folder / f"moorings-{name}.json").write_text(text)


if __name__ == "__main__":
    main()

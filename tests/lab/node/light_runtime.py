"""Plays a container runtime for a real kubelet: `python -m ... SOCKET FOLDER STUBS`.

Containers are entries of a table: they run until they are stopped, or end at once when
their command is `true`. CDI devices are resolved as a runtime does, by the files of
FOLDER/cdi, and what each container would get is written to FOLDER/containers as JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

api: Any = None
"""The messages of CRI, compiled from kubelet's own file."""
_NOW = time.time_ns


class Runtime:
    """The table of sandboxes and containers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._sandboxes: dict[str, Any] = {}
        self._containers: dict[str, Any] = {}

    def find(self, method: str) -> Callable[[Any], Any] | None:
        """Return what plays a method, such as `_run_pod_sandbox`."""
        play: Callable[[Any], Any] | None = getattr(self, f"_do{method}", None)
        return play

    def _do_version(self, _: Any) -> Any:
        return api.VersionResponse(
            version="0.1.0",
            runtime_name="light",
            runtime_version="2.0.0",
            runtime_api_version="v1",
        )

    def _do_status(self, _: Any) -> Any:
        names = ("RuntimeReady", "NetworkReady")
        conditions = [api.RuntimeCondition(type=name, status=True) for name in names]
        return api.StatusResponse(status=api.RuntimeStatus(conditions=conditions))

    def _do_run_pod_sandbox(self, request: Any) -> Any:
        name = f"s{next(self._numbers)}"
        options = request.config.linux.security_context.namespace_options
        self._sandboxes[name] = api.PodSandboxStatus(
            id=name,
            metadata=request.config.metadata,
            state=api.SANDBOX_READY,
            created_at=_NOW(),
            labels=request.config.labels,
            annotations=request.config.annotations,
            network=api.PodSandboxNetworkStatus(ip="127.0.0.1"),
            linux=api.LinuxPodSandboxStatus(namespaces=api.Namespace(options=options)),
        )
        return api.RunPodSandboxResponse(pod_sandbox_id=name)

    def _do_stop_pod_sandbox(self, request: Any) -> Any:
        sandbox = self._sandboxes.get(request.pod_sandbox_id)
        if sandbox is not None:
            sandbox.state = api.SANDBOX_NOTREADY
        for status, owner in self._containers.values():
            if owner == request.pod_sandbox_id:
                _end(status, 137)
        return api.StopPodSandboxResponse()

    def _do_remove_pod_sandbox(self, request: Any) -> Any:
        self._sandboxes.pop(request.pod_sandbox_id, None)
        return api.RemovePodSandboxResponse()

    def _do_pod_sandbox_status(self, request: Any) -> Any:
        return api.PodSandboxStatusResponse(
            status=self._sandboxes[request.pod_sandbox_id]
        )

    def _do_list_pod_sandbox(self, request: Any) -> Any:
        items = [
            api.PodSandbox(
                id=sandbox.id,
                metadata=sandbox.metadata,
                state=sandbox.state,
                created_at=sandbox.created_at,
                labels=sandbox.labels,
                annotations=sandbox.annotations,
            )
            for sandbox in self._sandboxes.values()
            if _matches(request.filter, sandbox.id, sandbox)
        ]
        return api.ListPodSandboxResponse(items=items)

    def _do_create_container(self, request: Any) -> Any:
        name = f"c{next(self._numbers)}"
        config = request.config
        # kubelet deletes the log with its container, as root whatever file it is.
        log = self._folder / "logs" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        log.touch()
        status = api.ContainerStatus(
            id=name,
            metadata=config.metadata,
            state=api.CONTAINER_CREATED,
            created_at=_NOW(),
            image=config.image,
            image_ref="light",
            labels=config.labels,
            annotations=config.annotations,
            log_path=str(log),
        )
        # What is refused here, kubelet tells in the pod's events.
        edits = [self._resolve(device.name) for device in config.CDI_devices]
        pod = request.sandbox_config.metadata
        record = self._folder / "containers" / f"{pod.namespace}_{pod.name}.json"
        record.write_text(
            json.dumps(
                {
                    "env": [entry for edit in edits for entry in edit.get("env", ())],
                    "cdi": [device.name for device in config.CDI_devices],
                }
            )
        )
        status.message = " ".join(config.command)
        self._containers[name] = (status, request.pod_sandbox_id)
        return api.CreateContainerResponse(container_id=name)

    def _resolve(self, qualified: str) -> dict[str, Any]:
        kind, _, name = qualified.partition("=")
        for path in (self._folder / "cdi").glob("[!.]*.json"):
            spec = json.loads(path.read_text())
            if spec["kind"] == kind:
                for device in spec["devices"]:
                    if device["name"] == name:
                        edits: dict[str, Any] = device["containerEdits"]
                        return edits
        raise LookupError(f"unresolvable CDI device {qualified}")

    def _do_start_container(self, request: Any) -> Any:
        status, _ = self._containers[request.container_id]
        status.state, status.started_at = api.CONTAINER_RUNNING, _NOW()
        if status.message == "true":
            _end(status, 0)
        return api.StartContainerResponse()

    def _do_stop_container(self, request: Any) -> Any:
        if request.container_id in self._containers:
            _end(self._containers[request.container_id][0], 143)
        return api.StopContainerResponse()

    def _do_remove_container(self, request: Any) -> Any:
        self._containers.pop(request.container_id, None)
        return api.RemoveContainerResponse()

    def _do_list_containers(self, request: Any) -> Any:
        containers = [
            api.Container(
                id=status.id,
                pod_sandbox_id=owner,
                metadata=status.metadata,
                image=status.image,
                image_ref=status.image_ref,
                state=status.state,
                created_at=status.created_at,
                labels=status.labels,
                annotations=status.annotations,
            )
            for status, owner in self._containers.values()
            if _matches(request.filter, status.id, status)
            and request.filter.pod_sandbox_id in {"", owner}
        ]
        return api.ListContainersResponse(containers=containers)

    def _do_container_status(self, request: Any) -> Any:
        status, _ = self._containers[request.container_id]
        return api.ContainerStatusResponse(status=status)

    def _do_image_status(self, request: Any) -> Any:
        image = api.Image(id="light", repo_tags=[request.image.image], size=1)
        return api.ImageStatusResponse(image=image)

    def _do_pull_image(self, _: Any) -> Any:
        return api.PullImageResponse(image_ref="light")

    def _do_image_fs_info(self, _: Any) -> Any:
        usage = api.FilesystemUsage(
            timestamp=_NOW(),
            fs_id=api.FilesystemIdentifier(mountpoint=str(self._folder)),
            used_bytes=api.UInt64Value(value=1),
            inodes_used=api.UInt64Value(value=1),
        )
        return api.ImageFsInfoResponse(
            image_filesystems=[usage], container_filesystems=[usage]
        )

    def _do_runtime_config(self, _: Any) -> Any:
        linux = api.LinuxRuntimeConfiguration(cgroup_driver=api.CGROUPFS)
        return api.RuntimeConfigResponse(linux=linux)


def _end(status: Any, code: int) -> None:
    if status.state != api.CONTAINER_EXITED:
        status.state, status.finished_at = api.CONTAINER_EXITED, _NOW()
        status.exit_code = code
        status.reason = "Error" if code else "Completed"


def _matches(wanted: Any, name: str, item: Any) -> bool:
    return (
        wanted.id in {"", name}
        and (not wanted.HasField("state") or wanted.state.state == item.state)
        and all(item.labels.get(k) == v for k, v in wanted.label_selector.items())
    )


class _Calls(grpc.GenericRpcHandler):  # type: ignore[misc] # has no types
    """Finds the method of a call by its name, and answers empty what we do not play."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def service(self, details: Any) -> Any:
        method = details.method.rpartition("/")[2]
        if method.startswith(("Stream", "GetContainerEvents")):
            return None
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in method)
        play = self._runtime.find(snake)
        request, response = f"{method}Request", f"{method}Response"

        async def answer(message: Any, context: Any) -> Any:
            if play is None:
                return getattr(api, response)()
            try:
                return play(message)
            except LookupError as error:
                await context.abort(grpc.StatusCode.NOT_FOUND, str(error))

        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=getattr(api, request).FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )


async def main(socket: str, folder: Path) -> None:
    """Serve until killed."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_Calls(Runtime(folder)),))
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[3])
    api = importlib.import_module("cri_v1_pb2")
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

"""The sockets on which kubelet finds a driver, from start to end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import grpc
import grpc.aio

from nodeagent.errors import NodeAgentError
from nodeagent.kubelet.plugin import Plugin
from nodeagent.kubelet.sockets import OwnSocket, SocketPaths, remove_stale
from nodeagent.prepare import files

_GRACE_S = 5.0


class SocketError(NodeAgentError):
    """A socket that cannot be opened."""


@contextlib.asynccontextmanager
async def serve_plugin(plugin: Plugin, paths: SocketPaths) -> AsyncIterator[None]:
    """Answer kubelet while the block runs; then leave no socket of ours behind.

    The plugin's own socket is there before the one by which kubelet learns of it. What
    is being prepared is finished before the end.

    Raises:
        SocketError: a path is too long, or its folder may not be written.
    """
    if paths.too_long is not None:
        raise SocketError(f"{paths.too_long}: over 107 bytes, which no socket can have")
    try:
        for path in (paths.registration, paths.plugin):
            files.make_folder(path.parent, 0o750)
        await asyncio.to_thread(remove_stale, paths, plugin.driver)
    except OSError as error:
        raise SocketError(str(error)) from error
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(tuple(plugin.make_handlers()))
    plugin_socket = OwnSocket(paths.plugin)
    registration = OwnSocket(paths.registration)
    try:
        for own in (plugin_socket, registration):
            server.add_insecure_port(f"unix:{own.hidden}")
        await server.start()
        plugin_socket.publish()
        registration.publish()
    except (RuntimeError, OSError) as error:
        await server.stop(None)
        raise SocketError(f"{plugin.driver}: {error}") from error
    try:
        yield
    finally:
        # kubelet sees the end of a driver by its registration socket.
        registration.remove()
        await server.stop(_GRACE_S)
        plugin_socket.remove()

"""Runs inside the sandbox, as the agent's uid: what comes to 127.0.0.1 goes on into the run's unix socket.

Ordinary clients cannot speak HTTP through a unix socket. Returns as soon as connections are accepted; where another
one listens already, at once. Needs Python's standard library and nothing else.
"""

import asyncio
import contextlib
import os
import socket

PORT = 3128
CHUNK = 65536
SOCKET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "proxy.sock")  # noqa: PTH100, PTH118, PTH120


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.closing(writer), contextlib.suppress(OSError):
        from_host, to_host = await asyncio.open_unix_connection(SOCKET)
        with contextlib.closing(to_host):
            await asyncio.gather(copy(reader, to_host), copy(from_host, writer))


async def serve(listener: socket.socket) -> None:
    server = await asyncio.start_server(connect, sock=listener)
    await server.serve_forever()


def become_background() -> None:
    """The call that started this must not wait for it."""
    if os.fork():
        os._exit(0)
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)


def main() -> None:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", PORT))
        listener.listen(128)
    except OSError:
        return
    become_background()
    asyncio.run(serve(listener))


if __name__ == "__main__":
    main()

"""Entry of the Hugging Face Space, and of ``python app.py`` on results of your own."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description="Show results as a leaderboard that can be drilled into.")
    parser.add_argument("--results", metavar="DIR|REPO[@SHA]", default=os.environ.get("AUTOMEDBENCH_RESULTS"),
                        help="folder of runs, or dataset on the Hub (default: runs, else a demonstration)")  # fmt: skip
    parser.add_argument("--data", type=Path, metavar="DIR",
                        help="folder of staged data that cases are drawn from, where their terms allow it")  # fmt: skip
    parser.add_argument("--refresh", type=float, default=60.0, metavar="SECONDS",
                        help="how often the results are read again (default: 60)")  # fmt: skip
    parser.add_argument("--host", default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=7860)
    arguments = parser.parse_args()

    from space.refresh import Refresher
    from space.source import SourceError, source_of

    try:
        results = Refresher(source_of(arguments.results), arguments.refresh)
    except SourceError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    door = _open_door(arguments.host, arguments.port)
    print("AutoMedBench starts; this takes some seconds", flush=True)

    import uvicorn  # the slow part: nobody waits for it to learn that a folder is not there or a port is taken

    from space.app import build_app
    from space.site import Site

    app = build_app(Site(results, arguments.data))
    print(f"AutoMedBench on http://{arguments.host}:{arguments.port}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[door])


def _open_door(host: str, port: int) -> socket.socket:
    """The port that pages are served on; exit code 3 where it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        why = os.strerror(number) if number and number > 0 else error
        print(f"error: cannot listen on {host}:{port}: {why}; try another --port", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()

"""Entry of the Hugging Face Space, and of ``python app.py`` on a local folder of runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from space.app import build


def main() -> None:
    parser = argparse.ArgumentParser(description="Show run records as a leaderboard.")
    parser.add_argument("--results", type=Path, default=Path("runs"), help="folder of runs (default: runs)")
    parser.add_argument("--port", type=int, default=7860)
    arguments = parser.parse_args()
    build(arguments.results).launch(server_port=arguments.port)


if __name__ == "__main__":
    main()

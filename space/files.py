"""Files of a run over HTTP: pictures and the texts of the run folder, by name, never by path."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, PlainTextResponse, Response

from space.site import Site
from space.snapshot import SHOWN_FILES, RunDetail

_TYPES = {
    ".webp": "image/webp", ".png": "image/png", ".json": "application/json", ".jsonl": "text/plain; charset=utf-8",
    ".gz": "application/gzip", ".md": "text/plain; charset=utf-8",
}  # fmt: skip
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "max-age=300",
}
"""The bytes come from an agent: no browser may take them for a page."""


def add_files(app: FastAPI, site: Site) -> None:
    @app.get("/files/{run_id}/{name:path}")
    def run_file(run_id: str, name: str) -> Response:
        run = site.data().run(run_id)
        path = _named(run, name) if run else None
        if path is None:
            return PlainTextResponse(f"run {run_id[:200]} has no file {name[:200]} to show", status_code=404)
        return FileResponse(path, media_type=_TYPES[path.suffix], headers=_HEADERS)


def _named(run: RunDetail, name: str) -> Path | None:
    if name in SHOWN_FILES:
        return run.file(name)
    if name == "plan.md":
        return run.plan
    if name == "plan.png":
        return run.plan_picture
    folder, _, picture = name.partition("/")
    return run.previews.get(picture.removesuffix(".webp")) if folder == "previews" else None

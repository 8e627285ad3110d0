"""The app: pages behind one address each, files and downloads beside them."""

from __future__ import annotations

import importlib
import warnings
from urllib.parse import parse_qsl, urlencode

import gradio as gr
from fastapi import FastAPI
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from space.api import add_api
from space.downloads import add_downloads
from space.files import add_files
from space.look import CSS, HEAD, theme
from space.pages import PAGES, Page
from space.shell import status, top
from space.site import HOME, Site


def build_app(site: Site) -> FastAPI:
    """The whole Space as one ASGI application."""
    app = build_files(site)
    blocks = build_blocks(site)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="SSR mode is not supported")
        mounted: FastAPI = gr.mount_gradio_app(
            app, blocks, "/", theme=theme(), css=CSS, head=HEAD, footer_links=["api"], show_error=False
        )  # fmt: skip
    return mounted


def build_files(site: Site) -> FastAPI:
    """What is no page: files of runs, downloads, and the addresses with ``?view=``."""
    app = FastAPI(title="AutoMedBench", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(_ViewToPath)
    add_files(app, site)
    add_downloads(app, site)
    return app


def build_blocks(site: Site) -> gr.Blocks:
    home, *others = PAGES
    with gr.Blocks(title="AutoMedBench", analytics_enabled=False) as blocks:
        _build(home, site)
        add_api(site)
    for page in others:
        with blocks.route(page.title, f"/{page.view}", show_in_navbar=False):
            _build(page, site)
    return blocks


def _build(page: Page, site: Site) -> None:
    """A page below its head; the head's second line tells how old the data are when the page is opened."""
    gr.HTML(top(page.view))
    age = gr.HTML(elem_id="status")
    site.on_load(lambda: status(site.data()), [age])
    importlib.import_module(f"space.pages.{page.view}").build(site)


class _ViewToPath:
    """``/?view=run&run=...``, the form that survives the frame of a Space's page, goes to ``/run?run=...``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if scope["type"] == "http" and scope["path"] == "/" and b"view=" in scope["query_string"]:
            state = dict(parse_qsl(scope["query_string"].decode("ascii", "replace")))
            view = state.pop("view", HOME)
            if view != HOME and view in {page.view for page in PAGES}:
                answer = RedirectResponse(f"./{view}?{urlencode(state)}")
        await answer(scope, receive, send)

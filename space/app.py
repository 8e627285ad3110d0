"""The app: pages behind one address each, files and downloads beside them."""

from __future__ import annotations

import importlib
import importlib.util

import gradio as gr
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.middleware.base import RequestResponseEndpoint

from space.api import add_api
from space.downloads import add_downloads
from space.files import add_files
from space.look import CSS, HEAD, theme
from space.pages import PAGES, Page
from space.shell import status, top
from space.site import HOME, Site


def build_app(site: Site) -> FastAPI:
    """The whole Space as one ASGI application."""
    app = FastAPI(title="AutoMedBench", docs_url=None, redoc_url=None, openapi_url=None)
    app.middleware("http")(_view_to_path)
    add_files(app, site)
    add_downloads(app, site)
    blocks = build_blocks(site)
    mounted: FastAPI = gr.mount_gradio_app(
        app, blocks, "/", theme=theme(), css=CSS, head=HEAD, footer_links=["api"], show_error=False, ssr_mode=False
    )  # fmt: skip
    return mounted


def build_blocks(site: Site) -> gr.Blocks:
    pages = [page for page in PAGES if importlib.util.find_spec(f"space.pages.{page.view}")]
    home, *others = pages
    with gr.Blocks(title="AutoMedBench", analytics_enabled=False) as blocks:
        _build(home, site)
        add_api(site)
    for page in others:
        with blocks.route(page.title, f"/{page.view}", show_in_navbar=page.listed):
            _build(page, site)
    return blocks


def _build(page: Page, site: Site) -> None:
    """A page below its head; the head's second line tells how old the data are when the page is opened."""
    gr.Navbar(visible=False)
    gr.HTML(top(page.view))
    age = gr.HTML(elem_id="status")
    site.on_load(lambda: status(site.data()), [age])
    importlib.import_module(f"space.pages.{page.view}").build(site)


async def _view_to_path(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """``/?view=run&run=...``, the form that survives the frame of a Space's page, goes to ``/run?run=...``."""
    view = request.query_params.get("view")
    if request.method == "GET" and request.url.path == "/" and view in {page.view for page in PAGES} - {HOME}:
        return RedirectResponse(f"./{view}?{request.url.remove_query_params('view').query}")
    return await call_next(request)

"""Compare: two or three runs and, where it may be seen, the reference, side by side on one case."""

from __future__ import annotations

from typing import Any

import gradio as gr

from space.markup import note
from space.runlist import best_of_agents, run_choices, task_choices
from space.scene import MAX_RUNS, Scene, set_scene, show_scene
from space.site import Site, listed, state_of
from space.snapshot import RunDetail
from space.viewer import images, masks
from space.viewer.canvas import PLANES, WINDOWS
from space.viewer.case import grid_shape
from space.viewer.draw import focus
from space.viewer.look import AGREEMENT, CLASSES, CONTOURS, LAYERS, VIEWS, Look
from tasks.registry import TaskError, load_task

_CHOSEN = ("task", "runs", "case")
_LOOK = ("view", "layer", "targets", "window", "opacity", "threshold", "x", "y", "z", "left", "right")


def build(site: Site) -> None:
    with gr.Row(elem_classes="amb-controls"):
        task = gr.Dropdown(label="Task", choices=[], filterable=True, allow_custom_value=True, min_width=280)
        runs = gr.Dropdown(
            label=f"Runs, up to {MAX_RUNS}", choices=[], multiselect=True, max_choices=MAX_RUNS, scale=3,
            allow_custom_value=True,
        )  # fmt: skip
    with gr.Row(elem_classes="amb-controls amb-cases"):
        back = gr.Button("‹ Case before", size="sm", min_width=110, scale=0)
        case = gr.Dropdown(
            label="Case (what the runs scored on it)", choices=[], filterable=True, allow_custom_value=True
        )
        forward = gr.Button("Next case ›", size="sm", min_width=110, scale=0)
    with gr.Row(elem_classes="amb-controls amb-look"):
        view = gr.Radio(VIEWS, value=VIEWS[0], label="Plane", visible=False, elem_classes="amb-tabs")
        layer = gr.Radio(LAYERS, value=CONTOURS, label="Drawn as", visible=False, elem_classes="amb-tabs")
        window = gr.Dropdown(
            list(WINDOWS), value="automatic", label="Grey values", visible=False, min_width=140
        )
        targets = gr.Dropdown(
            [], multiselect=True, label="Structures (none chosen: the first eight)", visible=False
        )
        left = gr.Dropdown([], label="Left of the bar", visible=False, min_width=140)
        right = gr.Dropdown([], label="Right of the bar", visible=False, min_width=140)
        opacity = gr.Slider(0, 1, 0.6, step=0.05, label="Opacity", visible=False, buttons=[])
        threshold = gr.Slider(0, 1, 0.0, step=0.01, label="Least score of a box", visible=False, buttons=[])
        z = gr.Slider(1, 2, 1, step=1, label="Axial slice", visible=False, buttons=[])
        y = gr.Slider(1, 2, 1, step=1, label="Coronal slice", visible=False, buttons=[])
        x = gr.Slider(1, 2, 1, step=1, label="Sagittal slice", visible=False, buttons=[])
    body = gr.HTML(elem_id="compare-body", padding=False)

    looks = dict(
        zip(_LOOK, (view, layer, targets, window, opacity, threshold, x, y, z, left, right), strict=True)
    )
    controls = {"task": task, "runs": runs, "case": case, **looks}
    everything = [*controls.values(), body]

    def opened(request: gr.Request) -> list[Any]:
        state = state_of(request)
        return _page(
            site, state.get("task"), listed(state.get("runs")), state.get("case"), _state_look(state)
        )

    def of_task(name: str) -> list[Any]:
        return _page(site, name, [], None, {})

    def of_runs(name: str, chosen: list[str], case_id: str, *values: Any) -> list[Any]:
        return _page(site, name, chosen or [], case_id, _without_place(values))

    def step(by: int, name: str, chosen: list[str], case_id: str, *values: Any) -> list[Any]:
        return _page(site, name, chosen or [], case_id, _without_place(values), by)

    def redraw(name: str, chosen: list[str], case_id: str, *values: Any) -> list[Any]:
        scene = _scene(site, name, chosen or [], case_id)
        look = dict(zip(_LOOK, values, strict=True))
        planes = (
            [gr.update(visible=shown) for shown in _sliders_shown(scene, look)] if scene else [gr.skip()] * 3
        )
        return [*planes, show_scene(site, scene, _look(look)) if scene else ""]

    quiet: dict[str, Any] = {"show_progress": "hidden", "queue": False, "api_visibility": "private"}
    inputs = list(controls.values())
    site.on_load(opened, everything)
    task.input(of_task, task, everything, **quiet)
    runs.input(of_runs, inputs, everything, **quiet)
    case.input(of_runs, inputs, everything, **quiet)
    for button, by in ((back, -1), (forward, 1)):
        button.click(lambda *values, by=by: step(by, *values), inputs, everything, **quiet)
    for control in looks.values():
        control.input(redraw, inputs, [x, y, z, body], trigger_mode="always_last", **quiet)
    site.remember(controls)


def _scene(
    site: Site, task_id: str | None, run_ids: list[str], case_id: str | None, by: int = 0
) -> Scene | None:
    try:
        task = load_task(task_id or "")
    except TaskError:
        return None
    snapshot = site.data()
    runs: list[RunDetail] = [run for run in map(snapshot.run, run_ids) if run and run.record.task == task.id]
    scene = set_scene(site, task, runs, case_id)
    if not by or scene.case_id is None:
        return scene
    names = [name for name, _ in scene.cases]
    return set_scene(site, task, runs, names[(names.index(scene.case_id) + by) % len(names)])


def _page(
    site: Site,
    task_id: str | None,
    run_ids: list[str],
    case_id: str | None,
    look: dict[str, Any],
    by: int = 0,
) -> list[Any]:
    """Updates of all controls and the content."""
    frame = site.data().runs
    tasks = task_choices(frame)
    if task_id is None and run_ids:
        known = site.data().run(run_ids[0])
        task_id = known.record.task if known else None
    task_id = task_id or (tasks[0][1] if tasks else None)
    run_ids = run_ids or best_of_agents(frame, task_id, 2)
    scene = _scene(site, task_id, run_ids, case_id, by)
    head = [
        gr.update(choices=tasks, value=task_id),
        gr.update(choices=run_choices(frame, task_id), value=run_ids[:MAX_RUNS]),
    ]
    if scene is None:
        text = (
            f"There is no task {task_id} in this version."
            if task_id
            else "There are no runs in these results."
        )
        return [
            *head,
            gr.update(choices=[], value=None),
            *[gr.update(visible=False)] * len(_LOOK),
            note(text),
        ]
    cases = gr.update(choices=[(label, name) for name, label in scene.cases], value=scene.case_id)
    looks, values = _controls(scene, look)
    return [*head, cases, *looks, show_scene(site, scene, _look(values))]


def _controls(scene: Scene, wanted: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Updates of the controls of the look, in their order, and the values they then have."""
    view = scene.view
    kind = scene.kind
    shape = (grid_shape(view) if view else None) or (1, 1, 1)
    place = focus(view) if view else (0, 0, 0)
    names = images.names(view) if view and kind == "image" else []
    structures = masks.target_names(view) if view and kind == "mask" else []
    layers = LAYERS if kind == "mask" else (CLASSES, AGREEMENT)
    views = VIEWS if kind == "mask" else PLANES
    flat = view is not None and kind == "image" and images.is_flat(view)
    values: dict[str, Any] = {
        "view": _one_of(wanted.get("view"), views, views[0]),
        "layer": _one_of(wanted.get("layer"), layers, layers[0]),
        "targets": [name for name in wanted.get("targets") or () if name in structures],
        "window": _one_of(wanted.get("window"), tuple(WINDOWS), "automatic"),
        "opacity": _number(wanted.get("opacity"), 0.6, 0, 1),
        "threshold": _number(wanted.get("threshold"), 0.0, 0, 1),
        "left": _one_of(wanted.get("left"), names, names[0] if names else None),
        "right": _one_of(wanted.get("right"), names, names[1] if len(names) > 1 else None),
    }
    for name, size, middle in zip("xyz", shape, place, strict=True):
        values[name] = int(_number(wanted.get(name), middle + 1, 1, size))
    shown = {
        "view": kind == "mask" or (kind == "image" and not flat),
        "layer": kind in ("mask", "boxes"),
        "targets": len(structures) > 1,
        "window": kind in ("mask", "image"),
        "opacity": kind == "mask",
        "threshold": kind == "boxes",
        "left": kind == "image",
        "right": kind == "image",
        **dict(zip("xyz", _sliders_shown(scene, values), strict=True)),
    }
    more: dict[str, dict[str, Any]] = {
        "view": {"choices": list(views)},
        "layer": {"choices": list(layers)},
        "targets": {"choices": structures},
        "left": {"choices": names},
        "right": {"choices": names},
        **{name: {"maximum": max(2, size)} for name, size in zip("xyz", shape, strict=True)},
    }
    return [
        gr.update(value=values[name], visible=shown[name], **more.get(name, {})) for name in _LOOK
    ], values


def _sliders_shown(scene: Scene, look: dict[str, Any]) -> list[bool]:
    """Of x, y and z: those along which a plane that is shown can be moved."""
    view = scene.view
    if (
        view is None
        or scene.kind not in ("mask", "image")
        or (scene.kind == "image" and images.is_flat(view))
    ):
        return [False] * 3
    planes = _look(look).planes
    return [plane in planes for plane in ("sagittal", "coronal", "axial")]


def _look(values: dict[str, Any]) -> Look:
    return Look(
        view=values["view"] or VIEWS[0],
        place=(int(values["x"] or 1) - 1, int(values["y"] or 1) - 1, int(values["z"] or 1) - 1),
        layer=values["layer"] or CONTOURS,
        opacity=float(values["opacity"] or 0.0),
        targets=tuple(values["targets"] or ()),
        window=values["window"] or "automatic",
        threshold=float(values["threshold"] or 0.0),
        left=values["left"] or "",
        right=values["right"] or "",
    )


def _state_look(state: dict[str, str]) -> dict[str, Any]:
    look: dict[str, Any] = {name: state[name] for name in _LOOK if name in state}
    return {**look, "targets": listed(state.get("targets"))}


def _without_place(values: tuple[Any, ...]) -> dict[str, Any]:
    """What stays when another case is opened: all but where it is cut."""
    return {name: value for name, value in zip(_LOOK, values, strict=True) if name not in ("x", "y", "z")}


def _one_of(value: Any, choices: Any, default: Any) -> Any:
    return value if value in choices else default


def _number(value: Any, default: float, low: float, high: float) -> float:
    try:
        return min(high, max(low, float(value)))
    except (TypeError, ValueError):
        return default

"""Read, compute, write: all pages and figures of a report."""

from __future__ import annotations

from pathlib import Path

from evaluator.files import write_atomic


def write_report(root: Path, out: Path | None = None) -> list[Path]:
    """Write ``report.html``, ``report.md`` and the figures of a sweep's folder, or of any folder of runs.

    The same records give the same bytes.

    Parameters
    ----------
    out : Path, optional
        Where to; ``report`` below ``root`` by default.

    Returns
    -------
    list of Path
        What was written, pages first.

    Raises
    ------
    UsageProblem
        ``root`` holds neither runs nor a lock.
    """
    from runner.sweep.report.material import read_material
    from runner.sweep.report.pages import html, markdown, sections

    material = read_material(root)
    found = sections(material)
    pages = {"report.html": html(material, found), "report.md": markdown(material, found)}
    figures = {f"{figure.name}.svg": figure.svg for section in found for figure in section.figures}
    out = out or root / "report"
    out.mkdir(parents=True, exist_ok=True)
    for name, text in (pages | figures).items():
        write_atomic(out / name, text)
    return [out / name for name in pages | figures]

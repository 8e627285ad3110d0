"""What a task is: the pydantic models behind every ``task.yaml``.

The brief, the evaluator and the Space all read limits, labels, metric names and baselines from here and from
nowhere else.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, PositiveInt, ValidationError

from tasks.names import Redistribution as Redistribution
from tasks.names import Release as Release
from tasks.names import Tier as Tier
from tasks.names import Track as Track

OUTPUT_ROOT = "outputs"
"""Folder of the workspace that is collected: ``outputs/<case>/<file>`` in every track."""


class Strict(BaseModel):
    """Base of all models that read foreign data: unknown keys are errors, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def first_problem(error: ValidationError, whole: str = "the file") -> str:
    """The first thing that is wrong, as ``field: message`` on one line.

    The names of unknown fields are a stranger's text: they are shortened, and what is not printable is spelled out.
    """
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])[:120] or whole
    said = f"{where}: {first['msg'][:300]}"
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in said)


class Download(Strict):
    """One file that anybody may download. ``None``: the upstream states no checksum or size."""

    url: HttpUrl
    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", description="File name below the raw folder")
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    bytes: PositiveInt | None = None


class HubFiles(Strict):
    """Files of a dataset repository on the Hugging Face Hub, by glob patterns; its revision is the source's."""

    repo: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    files: Annotated[tuple[str, ...], Field(min_length=1)]


class RecordFiles(Strict):
    """Files of a public record whose site lists names, sizes and checksums itself, by glob patterns."""

    site: Literal["zenodo", "figshare"]
    record: PositiveInt
    files: Annotated[tuple[str, ...], Field(min_length=1)]


class Source(Strict):
    """Where the upstream data come from and under which terms."""

    dataset: str
    url: HttpUrl
    revision: str | None = None
    license: str
    access: Literal["open", "registration", "credentialed"]
    redistribution: Redistribution = Redistribution.NONE
    acquisition: str = Field(description="How a user obtains the data lawfully, in one or two sentences")
    downloads: tuple[Download, ...] = ()
    hub: HubFiles | None = None
    record: RecordFiles | None = None


class InputFile(Strict):
    """One public file a case (``name`` may be a glob such as ``images/*.jpg``)."""

    name: str
    format: str
    description: str


# --- outputs: one model per kind of artifact ---


class MaskFile(Strict):
    """One label map on the grid of ``grid_of`` (a public input file)."""

    name: str
    labels: dict[int, str] = Field(description="id -> meaning, background included")
    grid_of: str


class Target(Strict):
    """One structure that gets its own Dice: the set of ``ids`` in ``file``."""

    name: str
    file: str
    ids: tuple[PositiveInt, ...]
    lesion: bool = Field(
        default=False,
        description="A single lesion that may truly be absent in a patient: a true negative counts 1 and is "
        "flagged. Other targets that are absent on both sides are left out of the case's mean.",
    )
    nsd_tolerance_mm: float = Field(default=2.0, gt=0)


class MaskOutput(Strict):
    kind: Literal["mask"]
    files: tuple[MaskFile, ...]
    targets: tuple[Target, ...]

    @property
    def filenames(self) -> tuple[str, ...]:
        return tuple(file.name for file in self.files)


class OneFile(Strict):
    """Base of the outputs that are one file a case."""

    file: str

    @property
    def filenames(self) -> tuple[str, ...]:
        return (self.file,)


class ImageOutput(OneFile):
    """A restored or synthesised image: ``.npy`` (2-D or 3-D) or NIfTI, as the file name says."""

    kind: Literal["image"]
    shape_of: str = Field(description="The public file whose shape, times ``scale``, the output must have")
    scale: PositiveInt = 1
    unit: str = "HU"
    data_range: tuple[float, float] = Field(
        description="Fixed range of the metric; values outside are clipped by it"
    )


class AnswerOutput(OneFile):
    kind: Literal["answer"]
    mode: Literal["open", "choice"] = "open"


class ReportOutput(OneFile):
    kind: Literal["report"]
    min_chars: PositiveInt = 40
    max_chars: PositiveInt = 8000
    min_letters: PositiveInt = 20
    sections: tuple[str, ...] = ()


class BoxOutput(OneFile):
    kind: Literal["boxes"]
    image: str
    classes: tuple[str, ...]
    max_detections: PositiveInt = 100


class LabelOutput(OneFile):
    """A class per case, optionally with a probability per class."""

    kind: Literal["label"]
    classes: tuple[str, ...]


Output = Annotated[
    MaskOutput | ImageOutput | AnswerOutput | ReportOutput | BoxOutput | LabelOutput,
    Field(discriminator="kind"),
]


class Metric(Strict):
    """Names carry their definition (``nsd_voxel``, ``ssim_gaussian``, ``map50_coco101``)."""

    headline: str
    secondary: tuple[str, ...] = ()
    sets: tuple[str, ...] = Field(
        default=("default",),
        description="Metric sets in order of preference; the first one whose weights are installed is used "
        "and named",
    )


class Limits(Strict):
    """What a run may use. Waiting for the model provider does not count as working time."""

    wall_seconds: PositiveInt = 3600
    call_seconds: PositiveInt = 600
    turns: PositiveInt = 100
    tokens: PositiveInt = 2_000_000
    cost_usd: float | None = Field(default=None, gt=0)
    memory_mb: PositiveInt = 8192
    disk_mb: PositiveInt = 20_000
    pids: PositiveInt = 512
    cpus: float = Field(default=2.0, gt=0)


class Model(Strict):
    """A pretrained model that a tier names, with its exact source."""

    name: str
    source: str
    revision: str | None = None
    note: str = ""


class LiteTier(Strict):
    model: Model


class StandardTier(Strict):
    candidates: Annotated[tuple[Model, ...], Field(min_length=2, max_length=6)]


class Tiers(Strict):
    lite: LiteTier
    standard: StandardTier

    def models(self, tier: Tier) -> tuple[Model, ...]:
        """What the brief of a tier names; nothing in the experimental ``pro`` tier."""
        named = {Tier.LITE: (self.lite.model,), Tier.STANDARD: self.standard.candidates}
        return named.get(tier, ())


class Trivial(Strict):
    """The do-nothing submission against which skill is measured."""

    kind: Literal[
        "empty_mask",
        "copied_input",
        "upsampled_input",
        "constant_answer",
        "template_report",
        "no_box",
        "constant_label",
    ]
    value: str | None = None


class Baseline(Strict):
    """Measured task scores on one release. ``None`` means not measured."""

    trivial: float | None = Field(default=None, ge=0, le=1)
    strong: float | None = Field(default=None, ge=0, le=1, description="The scripted baseline agent's score")
    basis: str = ""


class Task(Strict):
    """One task of the benchmark; ``tasks/<track>/<id>/`` holds its ``task.yaml``, texts and requirements."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    title: str
    track: Track
    modality: str
    in_paper: bool
    paper_name: str | None = None
    background: str = Field(description="Clinical background, in a few sentences of our own")
    source: Source
    unit: Literal["case", "slice", "study", "question", "image", "volume"] = "case"
    cases: PositiveInt | None = Field(default=None, description="Cases of the published runs, where stated")
    inputs: tuple[InputFile, ...]
    output: Output
    references: tuple[str, ...] = Field(description="Private files per case, for staging and the evaluator")
    metric: Metric
    limits: Limits = Limits()
    repeats: PositiveInt = Field(default=10, description="Published repeats per cell")
    tiers: Tiers
    trivial: Trivial
    baselines: dict[Release, Baseline] = {}
    basis: dict[str, str] = Field(
        default={}, description="Field -> 'ours' where no published source states it"
    )

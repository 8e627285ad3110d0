"""PathCap: one table of captions (JSON list, JSON lines or CSV) and the pictures that it names, in one or more folders.

Where a caption belongs to a picture, the columns are called by one of the names below; pictures are found by their
file name, wherever they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hf_datasets.staging.base import CaseFolders, StagingError, listing, some
from hf_datasets.staging.csv_rows import rows_of
from hf_datasets.staging.images import read_picture, rgb
from hf_datasets.staging.studies import IMAGES_NOTE, Section, write_study
from hf_datasets.staging.vqa.tables import read_json_lines, read_json_list

IMAGE_COLUMNS = ("image", "image_path", "file_name", "filename", "img_id", "image_id")
CAPTION_COLUMNS = ("caption", "text")
PICTURES = (".jpg", ".jpeg", ".png")
TABLES = (".json", ".jsonl", ".csv")
OTHER_FILES = ("README.md", "LICENSE", "LICENSE.txt", "phantom.json")
NOTES = {
    "report": "upstream's caption, white space tidied",
    "left out": "pictures without a caption, captions without a letter",
    "images": f"{IMAGES_NOTE}; one a case",
}


@dataclass(frozen=True)
class Captioned:
    """A picture and its caption."""

    table: Path
    picture: Path
    caption: str
    image: str = ""

    @property
    def origin(self) -> str:
        return self.picture.stem

    @property
    def files(self) -> Sequence[Path]:
        return (self.table, self.picture)

    def write(self, to: CaseFolders) -> None:
        write_study(to, [rgb(read_picture(self.picture))], [Section("caption", self.caption)], {})


def find(source: Path) -> Sequence[Captioned]:
    """Every captioned picture, by name."""
    table = _table(source)
    pictures = _pictures(source)
    captions = dict(_captions(table))
    if missing := captions.keys() - pictures.keys():
        raise StagingError(
            f"{table}: names {some(missing, 3)}, found no such pictures among {len(pictures)}; unpack all archives"
        )
    cases = [Captioned(table, pictures[name], caption) for name, caption in sorted(captions.items())]
    if not cases:
        raise StagingError(f"{table}: expected captions with letters, found none")
    return cases


def _table(source: Path) -> Path:
    found = [
        path
        for path in sorted(source.iterdir())
        if path.suffix in TABLES and path.name not in OTHER_FILES and not path.name.startswith(".")
    ]
    if len(found) != 1:
        names = some(path.name for path in found) or listing(source)
        raise StagingError(f"{source}: expected one table of captions ({', '.join(TABLES)}), found {names}")
    return found[0]


def _pictures(source: Path) -> dict[str, Path]:
    """File name -> picture; a name that lies in two folders is refused, because a caption could mean either."""
    pictures: dict[str, Path] = {}
    for path in sorted(source.rglob("*")):
        if path.suffix.lower() in PICTURES and not path.name.startswith("."):
            if path.name in pictures:
                raise StagingError(f"{source}: expected each picture once, found {path.name} in two folders")
            pictures[path.name] = path
    if not pictures:
        raise StagingError(f"{source}: expected pictures in a folder, found {listing(source)}")
    return pictures


def _captions(table: Path) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for number, row in enumerate(_rows(table), start=1):
        name = PurePosixPath(_field(table, number, row, IMAGE_COLUMNS)).name
        if not name.lower().endswith(PICTURES):
            name += ".jpg"
        if name in seen:
            raise StagingError(f"{table}: expected one caption a picture, found {name} again in row {number}")
        seen.add(name)
        caption = " ".join(_field(table, number, row, CAPTION_COLUMNS).split())
        if any(letter.isalpha() for letter in caption):
            yield name, caption


def _rows(table: Path) -> Iterator[Mapping[str, Any]]:
    if table.suffix == ".csv":
        return rows_of(table, ())
    return iter(read_json_lines(table) if table.suffix == ".jsonl" else read_json_list(table))


def _field(table: Path, number: int, row: Mapping[str, Any], names: Sequence[str]) -> str:
    for name in names:
        if name in row:
            if not isinstance(row[name], str):
                raise StagingError(
                    f"{table}: expected a text as {name} in row {number}, found {row[name]!r:.40}"
                )
            return str(row[name])
    raise StagingError(
        f"{table}: expected one of {', '.join(names)} in row {number}, found {some(map(str, row)) or 'nothing'}"
    )

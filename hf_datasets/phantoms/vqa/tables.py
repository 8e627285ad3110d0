"""Parquet files as the Hub keeps them: pictures as structs of bytes and path, a few rows a group."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ROWS_A_GROUP = 10


def write_parquet(path: Path, rows: list[dict[str, Any]], pictures: tuple[str, ...]) -> None:
    """Write rows of texts, lists of texts and, in the columns ``pictures``, structs made by `encoded`."""
    import pyarrow as arrow
    from pyarrow import parquet

    image = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    fields: list[tuple[str, Any]] = []
    features: dict[str, Any] = {}
    for name, value in rows[0].items():
        if name in pictures:
            fields.append((name, image))
            features[name] = {"_type": "Image"}
        elif isinstance(value, list):
            fields.append((name, arrow.list_(arrow.string())))
            features[name] = {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"}
        else:
            fields.append((name, arrow.string()))
            features[name] = {"dtype": "string", "_type": "Value"}
    note = {"huggingface": json.dumps({"info": {"features": features}})}
    table = arrow.Table.from_pylist(rows, schema=arrow.schema(fields, metadata=note))
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path, row_group_size=ROWS_A_GROUP)


def encoded(pixels: np.ndarray, name: str) -> dict[str, Any]:
    """A picture as the ``datasets`` library stores it."""
    return {"bytes": jpeg(pixels), "path": name}


def jpeg(pixels: np.ndarray) -> bytes:
    """The pixels as a JPEG file."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="JPEG", quality=92)
    return buffer.getvalue()

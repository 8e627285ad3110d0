"""The CheXbert labeler (Smit et al., EMNLP 2020) from local weights.

Needs torch and transformers (the extra ``report``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from evaluator.metrics.chest import LABELS

Labeler = Callable[[Sequence[str]], list[set[str]]]
"""Reports -> the labels each one affirms or leaves uncertain."""

CHECKPOINT, BERT_FOLDER = "chexbert.pth", "bert-base-uncased"
MAX_TOKENS = 512

_POSITIVE, _UNCERTAIN = 1, 3
_CLASSES = (4,) * 13 + (2,)
"""Blank, positive, negative, uncertain; for No Finding blank and positive."""


def chexbert_labeler(folder: Path, batch_size: int = 16) -> Labeler:
    """Load ``folder/chexbert.pth`` and the configuration and vocabulary in ``folder/bert-base-uncased``.

    Notes
    -----
    Fourteen linear heads on the first token of BERT. Positive and uncertain both count, the published
    convention of the 14-label micro average. Reports are cut at 512 tokens.
    """
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    config = transformers.BertConfig.from_pretrained(folder / BERT_FOLDER, local_files_only=True)
    tokenizer = transformers.BertTokenizer.from_pretrained(folder / BERT_FOLDER, local_files_only=True)
    bert = transformers.BertModel(config)
    heads = torch.nn.ModuleList([torch.nn.Linear(config.hidden_size, size) for size in _CLASSES])
    bert.load_state_dict(_weights(folder / CHECKPOINT, "bert."), strict=False)
    heads.load_state_dict(_weights(folder / CHECKPOINT, "linear_heads."))
    bert.eval()

    def label(reports: Sequence[str]) -> list[set[str]]:
        found: list[set[str]] = []
        for start in range(0, len(reports), batch_size):
            texts = [" ".join(report.split()) for report in reports[start : start + batch_size]]
            batch = tokenizer(
                texts, truncation=True, max_length=MAX_TOKENS, padding=True, return_tensors="pt"
            )
            with torch.inference_mode():
                first = bert(batch["input_ids"], attention_mask=batch["attention_mask"])[0][:, 0]
                classes = torch.stack([head(first).argmax(dim=1) for head in heads], dim=1).tolist()
            found.extend(_positive(row) for row in classes)
        return found

    return label


def _positive(classes: Sequence[int]) -> set[str]:
    return {label for label, value in zip(LABELS, classes, strict=True) if value in (_POSITIVE, _UNCERTAIN)}


def _weights(checkpoint: Path, part: str) -> dict[str, Any]:
    """The tensors of one part of the model, their names without the prefix that the training wrapper left."""
    state = import_module("torch").load(checkpoint, map_location="cpu", weights_only=True)["model_state_dict"]
    prefix = f"module.{part}"
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}

"""The loading code of CheXbert and LPIPS, on tiny or random weights; needs torch, which is no dependency."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.metrics import lpips
from evaluator.metrics.chest import LABELS
from evaluator.metrics.chexbert import BERT_FOLDER, CHECKPOINT, chexbert_labeler

torch: Any = pytest.importorskip("torch")

CLASSES = [4] * 13 + [2]


def test_chexbert_from_a_checkpoint(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    bert_folder = tmp_path / BERT_FOLDER
    bert_folder.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz."
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (bert_folder / "vocab.txt").write_text("\n".join(words))
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    config.save_pretrained(bert_folder)
    torch.manual_seed(0)
    model = torch.nn.Module()
    model.bert = transformers.BertModel(config)
    model.linear_heads = torch.nn.ModuleList([torch.nn.Linear(32, size) for size in CLASSES])
    for weight in model.parameters():
        weight.data *= 3
    model.eval()
    state = {f"module.{name}": value for name, value in model.state_dict().items()}
    torch.save({"model_state_dict": state}, tmp_path / CHECKPOINT)

    reports = ["no effusion", "a small\n effusion.", "", "z " * 900]
    tokenizer = transformers.BertTokenizer.from_pretrained(bert_folder)
    for report, found in zip(reports, chexbert_labeler(tmp_path, batch_size=3)(reports), strict=True):
        ids = tokenizer(" ".join(report.split()))["input_ids"]
        ids = ids if len(ids) <= 512 else [*ids[:511], tokenizer.sep_token_id]
        with torch.no_grad():
            first = model.bert(torch.tensor([ids]))[0][:, 0]
            values = [int(head(first).argmax()) for head in model.linear_heads]
        assert found == {label for label, value in zip(LABELS, values, strict=True) if value in (1, 3)}


def test_lpips_from_weight_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    sizes = {0: (64, 3, 11), 3: (192, 64, 5), 6: (384, 192, 3), 8: (256, 384, 3), 10: (256, 256, 3)}
    backbone = {}
    for index, (out, into, window) in sizes.items():
        layer = torch.nn.Conv2d(into, out, window)
        backbone |= {f"features.{index}.weight": layer.weight.data, f"features.{index}.bias": layer.bias.data}
    heads = {
        f"lin{n}.model.1.weight": torch.rand(1, out, 1, 1) for n, (out, _, _) in enumerate(sizes.values())
    }
    torch.save(backbone, tmp_path / lpips.BACKBONE)
    torch.save(heads, tmp_path / lpips.HEADS)
    with pytest.raises(RuntimeError, match="SHA-256"):
        lpips.load_lpips(tmp_path, (0.0, 1.0))
    digests = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in lpips.DIGESTS}
    monkeypatch.setattr(lpips, "DIGESTS", digests)

    distance = lpips.load_lpips(tmp_path, (-1000.0, 1000.0))
    image, noise = np.random.default_rng(0).uniform(-500, 500, (2, 64, 70))
    assert distance(image, image) == 0.0
    assert distance(image, noise) == pytest.approx(distance(noise, image))
    scores = [distance(image, image + step * noise) for step in (0, 0.1, 0.3, 0.9)]
    assert scores == sorted(scores)
    assert scores[1] > 0.0
    # values outside of the task's range are clipped to it
    assert distance(np.full_like(image, 1000.0), np.full_like(image, 5000.0)) == 0.0
    with pytest.raises(ValueError, match="2-D"):
        distance(image[None], image[None])

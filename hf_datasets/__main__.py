"""``python -m hf_datasets``."""

from hf_datasets.cli import app

app(prog_name="python -m hf_datasets")

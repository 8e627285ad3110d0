"""Which runs may stand on one board; the rule is that of ``hf_datasets.stats``."""

from hf_datasets.stats.boards import board_title, limits_text, with_boards

__all__ = ["board_title", "limits_text", "with_boards"]

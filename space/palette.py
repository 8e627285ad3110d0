"""Colours that people with any colour vision can tell apart (Okabe and Ito), the same on every page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """Hex colours. ``series`` are for agents, in order of rank; they repeat with other markers (``symbols``)."""

    series: tuple[str, ...] = (
        "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#b8a800",
    )  # fmt: skip
    symbols: tuple[str, ...] = ("circle", "square", "diamond", "triangle-up")
    accent: str = "#0b7285"
    true_positive: str = "#009e73"
    false_positive: str = "#d55e00"
    false_negative: str = "#56b4e9"
    sequential: tuple[str, ...] = ("#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b")
    codes: tuple[tuple[str, str], ...] = (
        ("E1", "#cc79a7"), ("E2", "#56b4e9"), ("E3", "#e69f00"), ("E4", "#0072b2"), ("E5", "#d55e00"),
    )  # fmt: skip

    def of(self, index: int) -> str:
        """The colour of the n-th series."""
        return self.series[index % len(self.series)]

    def symbol(self, index: int) -> str:
        """Its marker, so that colour alone never tells two series apart."""
        return self.symbols[index % len(self.symbols)]


PALETTE = Palette()

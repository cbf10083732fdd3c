"""Words of a native table of which some follow from sizes, and are put in when these are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np


class SizeWord(NamedTuple):
    """A number that depends on sizes: its position among those that are given with them."""

    position: int


Number: TypeAlias = int | SizeWord


class Words:
    """Words of a native table, of which some are known later."""

    def __init__(self, words: Sequence[Number]) -> None:
        places = [i for i, word in enumerate(words) if type(word) is SizeWord]
        known = list(words)
        for i in places:
            known[i] = 0
        self._known = np.array(known, np.int64)
        self._places = np.array(places, np.intp)
        self._positions = np.array([words[i][0] for i in places], np.intp)  # type: ignore[index]

    def __len__(self) -> int:
        return len(self._known)

    @staticmethod
    def joined(parts: Sequence[Words]) -> Words:
        """The words of several parts, one after the other."""
        whole = Words(())
        starts = np.cumsum([0, *map(len, parts)])
        whole._known = np.concatenate([part._known for part in parts])
        whole._places = np.concatenate([start + part._places for part, start in zip(parts, starts)])
        whole._positions = np.concatenate([part._positions for part in parts])
        return whole

    def at(self, numbers: np.ndarray) -> np.ndarray:
        """All words, given those numbers that were missing."""
        words = self._known.copy()
        words[self._places] = numbers[self._positions]
        return words

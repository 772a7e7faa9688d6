"""Random choices that read like sentences."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice(random.Random):
    """Equal seeds give equal choices, on every machine."""

    def chance(self, percent: float) -> bool:
        """True that often."""
        return self.random() * 100 < percent

    def some(self, options: Sequence[T], least: int = 1, most: int | None = None) -> list[T]:
        """Between `least` and `most` distinct ones of `options`."""
        most = len(options) if most is None else min(most, len(options))
        return self.sample(options, self.randint(min(least, most), most))

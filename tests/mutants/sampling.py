"""The sample: so many places of each package, in an order that follows from the seed and the text of the code alone."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.mutants.finding import Mutant

FEWEST_PER_PACKAGE = 20

Site = tuple[str, str]


def rank(seed: int, text: str) -> bytes:
    """Return the place of `text` in the order that `seed` makes."""
    return hashlib.sha256(f"{seed}|{text}".encode()).digest()


def shares(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Divide `total` by size; each package gets at least 20, or all that it has."""
    given = {package: min(FEWEST_PER_PACKAGE, size) for package, size in sizes.items()}
    for _ in range(total - sum(given.values())):
        open_packages = [package for package in sorted(sizes) if given[package] < sizes[package]]
        if not open_packages:
            break
        given[max(open_packages, key=lambda package: sizes[package] / (given[package] + 1))] += 1
    return given


def sample(mutants: Iterable[Mutant], seed: int, total: int) -> dict[str, list[Mutant]]:
    """Return by package `total` mutants, no two of one place.

    A place is drawn first and then one of its mutants, so that a comparison, which has five, counts once. The draw
    depends on the text of a line and on its file's name, not on folder or line number: it stays while other code
    comes, goes and moves.
    """
    by_site: dict[str, dict[Site, list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    for mutant in mutants:
        by_site[mutant.package][mutant.path, mutant.site].append(mutant)
    chosen = {}
    for package, number in shares({package: len(sites) for package, sites in by_site.items()}, total).items():
        sites = sorted(
            by_site[package].items(), key=lambda item: (rank(seed, f"{Path(item[0][0]).name}|{item[0][1]}"), item[0])
        )
        chosen[package] = [
            min(of_site, key=lambda mutant: rank(seed, f"{mutant.site}|{mutant.operator}|{mutant.variant}"))
            for _, of_site in sites[:number]
        ]
    return dict(sorted(chosen.items()))


def _site_order(seed: int, path: str, site: str) -> tuple[bytes, str]:
    """Order places by file name and text; equal lines of different files are drawn apart."""
    return rank(seed, f"{Path(path).name}|{site}"), path

"""`make upstream-tables`: compare the results here with the tables of kube-scheduler's own unit tests."""

import os
import sys
from collections import Counter

from tests.upstream.cases import read_cases
from tests.upstream.comparing import AGREES, CONTRADICTS, SET_ASIDE, UNKNOWN, WAITING, compare
from tests.upstream.extraction import ExtractionFailed, extracted

_COLUMNS = (AGREES, UNKNOWN, WAITING, SET_ASIDE, CONTRADICTS)


def main() -> int:
    """Print the counts by plugin, and each case that contradicts upstream."""
    try:
        folder = extracted(os.environ, lambda line: print(f"upstream's tables: {line}", file=sys.stderr, flush=True))
    except ExtractionFailed as failure:
        print(f"upstream's tables: {failure}", file=sys.stderr)
        return 1
    counts: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for case in read_cases(folder):
        outcome = compare(case)
        counts.setdefault(case.plugin, Counter())[outcome.kind] += 1
        if outcome.kind == CONTRADICTS:
            print(f"{case.plugin}: {case.test}: {outcome.detail}")
        if outcome.kind == SET_ASIDE:
            reasons[outcome.detail] += 1
    print(f"{'':24}{''.join(f'{column:>13}' for column in _COLUMNS)}")
    for plugin, found in {**counts, "all": sum(counts.values(), Counter())}.items():
        print(f"{plugin:24}{''.join(f'{found[column]:>13}' for column in _COLUMNS)}")
    for reason, number in reasons.most_common():
        print(f"set aside: {number} {reason}")
    return 1 if any(found[CONTRADICTS] for found in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

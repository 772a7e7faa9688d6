"""`make mutants`: put small faults into the code one at a time and count those that the tests notice."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.equivalents import read_equivalents
from tests.mutants.finding import Mutant, find_mutants
from tests.mutants.recorded_run import recorded, sources
from tests.mutants.report import Score, score, survivors, table
from tests.mutants.sampling import sample
from tests.mutants.selection import Recorded, batches, select_tests
from tests.mutants.trial import Verdict, Workshop

ROOT = Path(__file__).parents[2]


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--sample", default="300", help="number of mutants, or `all` (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
    parser.add_argument("--package", action="append", help="only this package, such as webhook/kube; repeatable")
    parser.add_argument("--file", action="append", help="only mutants of this module; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time (default: processors)")
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of tests per mutant (default: 40)")
    parser.add_argument("--require", type=float, default=0.0, help="exit 1 if a package scores less (percent)")
    parser.add_argument("--list", action="store_true", help="print the sample and stop")
    parser.add_argument("--json", type=Path, help="write all verdicts to this file")
    return parser.parse_args(given)


def main() -> int:
    """Try the mutants of the sample; print those that survive, and the score by package."""
    asked = arguments()
    chosen = _chosen(asked)
    if asked.list:
        for mutant in (each for mutants in chosen.values() for each in mutants):
            print(f"{mutant.path}:{mutant.line}: {mutant.operator}")
        return 0
    found = recorded(ROOT)
    equivalents = read_equivalents()
    scores: dict[str, Score] = {}
    for package, verdicts in _tried(chosen, found, asked.jobs, asked.budget):
        scores[package] = score(verdicts, equivalents)
        print(f"## {package}: {scores[package].percent:.0f} %\n{survivors(scores[package])}\n", flush=True)
    print(table(scores))
    if asked.json:
        asked.json.write_text(
            json.dumps({package: [asdict(each) for each in scored.verdicts] for package, scored in scores.items()})
        )
    return 1 if any(each.percent < asked.require for each in scores.values()) else 0


def _chosen(asked: argparse.Namespace) -> dict[str, list[Mutant]]:
    everything = [mutant for path, source in sources(ROOT).items() for mutant in find_mutants(path, source)]
    if asked.file:
        everything = [mutant for mutant in everything if mutant.path in asked.file]
    if asked.sample != "all":
        chosen = sample(everything, asked.seed, int(asked.sample))
    else:
        chosen = {package: [] for package in sorted({mutant.package for mutant in everything})}
        for mutant in everything:
            chosen[mutant.package].append(mutant)
    return {package: mutants for package, mutants in chosen.items() if not asked.package or package in asked.package}


def _tried(
    chosen: Mapping[str, Sequence[Mutant]], found: Recorded, jobs: int, budget: float
) -> Iterator[tuple[str, list[Verdict]]]:
    """Yield each package's verdicts once they are all there."""
    total, done = sum(map(len, chosen.values())), 0
    with ExitStack() as stack:
        free: SimpleQueue[Workshop] = SimpleQueue()
        workshops = [stack.enter_context(Workshop(ROOT, found.durations)) for _ in range(jobs)]
        for workshop in workshops:
            free.put(workshop)

        def verdict_on(mutant: Mutant) -> Verdict:
            nonlocal done
            workshop = free.get()
            try:
                tests = batches(select_tests(mutant, found, budget))
                return workshop.try_mutant(mutant, found.sources[mutant.path], tests)
            finally:
                free.put(workshop)
                done += 1
                if sys.stderr.isatty():
                    print(f"\r{done} of {total}", end="", file=sys.stderr, flush=True)

        pool = ThreadPoolExecutor(jobs)
        stack.callback(pool.shutdown, cancel_futures=True)
        pending = {package: [pool.submit(verdict_on, each) for each in mutants] for package, mutants in chosen.items()}
        for package, futures in pending.items():
            yield package, [future.result() for future in futures]
        for test in sorted(frozenset[str]().union(*(workshop.mistrusted for workshop in workshops))):
            print(f"mutants: fails here without a mutant, left out: {test}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

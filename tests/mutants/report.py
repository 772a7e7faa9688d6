"""The report of a run: the mutants that survived, and the score by package."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.mutants.equivalents import Equivalent
from tests.mutants.trial import TIMEOUT, UNTESTED, Verdict


@dataclass(frozen=True, slots=True)
class Score:
    """The mutants of one package: those that are counted, and how many are known to be equivalent."""

    verdicts: Sequence[Verdict]
    equivalent: int

    @property
    def killed(self) -> int:
        return sum(verdict.is_killed for verdict in self.verdicts)

    @property
    def percent(self) -> float:
        return 100 * self.killed / len(self.verdicts) if self.verdicts else 100.0

    def number(self, outcome: str) -> int:
        return sum(verdict.outcome == outcome for verdict in self.verdicts)


def score(verdicts: Iterable[Verdict], equivalents: Iterable[Equivalent]) -> Score:
    """Leave out the equivalents; a mutant that is killed is not equivalent, even if listed."""
    known = list(equivalents)
    all_verdicts = list(verdicts)
    counted = [
        verdict for verdict in all_verdicts if verdict.is_killed or not any(each.names(verdict) for each in known)
    ]
    return Score(counted, len(all_verdicts) - len(counted))


def survivors(found: Score) -> str:
    """Return the mutants that no test noticed, with file, line and change."""
    lines = []
    for verdict in sorted(found.verdicts, key=lambda verdict: (verdict.mutant.path, verdict.mutant.line)):
        if not verdict.is_killed:
            mutant = verdict.mutant
            lines.append(f"{mutant.path}:{mutant.line}: {verdict.outcome}, {mutant.operator}, {verdict.tests} tests")
            lines += [f"    - {line}" for line in verdict.before.splitlines()]
            lines += [f"    + {line}" for line in verdict.after.splitlines()]
    return "\n".join(lines)


def table(scores: Mapping[str, Score]) -> str:
    """Return the score by package and of all, as a Markdown table."""
    everything = Score(
        [verdict for each in scores.values() for verdict in each.verdicts],
        sum(each.equivalent for each in scores.values()),
    )
    lines = [
        "| package | mutants | killed | of these by timeout | survived | without a test | equivalent | score |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for package, each in {**scores, "all": everything}.items():
        untested = each.number(UNTESTED)
        survived = len(each.verdicts) - each.killed - untested
        lines.append(
            f"| {package} | {len(each.verdicts)} | {each.killed} | {each.number(TIMEOUT)} | {survived} | {untested} "
            f"| {each.equivalent} | {each.percent:.0f} % |"
        )
    return "\n".join(lines)

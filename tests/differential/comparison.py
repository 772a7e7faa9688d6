"""Find disagreements between a placement and kube-scheduler's result, where the relevant plugins are modelled."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.differential.kube_scheduler import Answer
from webhook.placement.framework.result import Placement
from webhook.placement.profiles.profile import Profile


class Disagreement(NamedTuple):
    """One thing on which both say something else; `kind` names the thing, the rest is for people."""

    kind: str
    predicted: object
    real: object


def disagreements(placement: Placement, answer: Answer, profile: Profile) -> list[Disagreement]:
    """Return all of them; none if `placement` predicted `answer`, or does not decide what differs.

    A placement leaves open what `unmodelled` plugins would say: with the verdict Unknown they may bar nodes, with
    any other they may only change the scores of their own, and the choice. Plugins that `profile` does not have must
    not make any difference unless they are named there.
    """
    return [*_of_verdict(placement, answer), *_of_message(placement, answer), *_of_nodes(placement, answer, profile)]


def _of_verdict(placement: Placement, answer: Answer) -> Iterator[Disagreement]:
    wanted = ("Feasible",) if answer.node else ("Waiting", "Infeasible")
    is_open = placement.verdict == "Unknown" and placement.unmodelled
    if placement.verdict not in wanted and not is_open:
        yield Disagreement("verdict", (placement.verdict, placement.message), answer.node or answer.message)


def _of_message(placement: Placement, answer: Answer) -> Iterator[Disagreement]:
    if answer.node is None and not placement.unmodelled and placement.message != answer.message:
        yield Disagreement("message", placement.message, answer.message)


def _of_nodes(placement: Placement, answer: Answer, profile: Profile) -> Iterator[Disagreement]:
    if answer.node is None:
        return
    real = set(answer.scores) or {answer.node}
    feasible = set(placement.scores)
    if placement.verdict == "Unknown":
        if not real <= feasible:
            yield Disagreement("feasible nodes", sorted(feasible), sorted(real))
        return
    if real != feasible:
        yield Disagreement("feasible nodes", sorted(feasible), sorted(real))
        return
    found = [*_of_scores(placement, answer, profile)]
    yield from found
    totals = {node: scores["total"] for node, scores in placement.scores.items()}
    if not found and not placement.unmodelled and totals[answer.node] != max(totals.values()):
        yield Disagreement("choice", totals, answer.node)
    first_of_best = min(node for node, total in totals.items() if total == max(totals.values()))
    if placement.node != first_of_best:
        yield Disagreement("node", placement.node, first_of_best)


def _of_scores(placement: Placement, answer: Answer, profile: Profile) -> Iterator[Disagreement]:
    if not answer.scores:
        return
    predicted, real = _by_plugin(placement.scores), _by_plugin(answer.scores)
    known = {plugin.name for plugin, _ in profile.scores}
    for plugin in sorted((predicted.keys() | real.keys()) - {"total"} - set(placement.unmodelled)):
        ours, theirs = predicted.get(plugin), real.get(plugin)
        is_silent = plugin not in known and not any((theirs or {}).values())
        if ours != theirs and not is_silent:
            yield Disagreement(f"scores of {plugin}", ours, theirs)


def _by_plugin(scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return `{plugin: {node: score}}`."""
    found: dict[str, dict[str, float]] = {}
    for node, each in scores.items():
        for plugin, score in each.items():
            found.setdefault(plugin, {})[node] = score
    return found

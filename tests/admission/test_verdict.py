"""Results of the placement check: only Infeasible with mode `deny` denies a pod."""

from dataclasses import dataclass
from typing import Any, get_args

import pytest

from tests.support.admission import DOMAIN, PRODUCT, TYPE, admit_pod, policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.scorers import ScorerOfNoNodes
from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Denied
from webhook.admission.verdict import Verdict, placement_of
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.framework.result import PlacementVerdict
from webhook.placement.scheduler import Placement
from webhook.policy.spec.admission import CheckMode

POD = make_pod().annotate(TYPE, "training").obj()
VERDICTS = get_args(PlacementVerdict)
MODES = get_args(CheckMode)


@dataclass(frozen=True, slots=True)
class Oracle(ScorerOfNoNodes):
    """A scorer with a fixed answer."""

    verdict: PlacementVerdict
    doubt: str = ""

    def answer(self, *_: object) -> Placement:
        """The answer."""
        return Placement(self.verdict, None, 3, 0, "0/3 nodes are available: 3 say so.", deny_exemption=self.doubt)


def verdict_on(mode: str, verdict: PlacementVerdict, doubt: str = "") -> Verdict:
    cluster = ClusterView(snapshot_from_documents([]), Oracle(verdict, doubt))
    return admit_pod(POD, policy_with(placementCheck={"mode": mode}), cluster)


def test_warnings_about_the_pod_come_before_those_about_the_cluster_and_the_verdict() -> None:
    pod = make_pod().annotate(TYPE, "training").annotate(PRODUCT, "NVIDIA-B300").annotate(f"{DOMAIN}/team", "a").obj()
    cluster = ClusterView(snapshot_from_documents([Document("c", make_node_object("n"))]), Oracle("Waiting"))

    found = admit_pod(pod, policy_with(), cluster).warnings

    starts = ("annotation ", "the pod requests no accelerator", "gpu-product: no node", "placement check: Waiting")
    assert [each for text in found for each in starts if text.startswith(each)] == [*starts]


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("mode", MODES)
def test_only_infeasible_with_mode_deny_is_denied(mode: str, verdict: PlacementVerdict) -> None:
    refused = isinstance(verdict_on(mode, verdict), Denied)

    assert refused == (mode == "deny" and verdict == "Infeasible")


@pytest.mark.parametrize(
    ("mode", "verdict", "warned"),
    [
        *[("off", verdict, False) for verdict in VERDICTS],
        *[(mode, verdict, False) for mode in ("warn", "deny") for verdict in ("Feasible", "Unknown")],
        *[(mode, "Waiting", True) for mode in ("warn", "deny")],
        ("warn", "Infeasible", True),
    ],
)
def test_user_is_warned_if_the_pod_cannot_start_now(mode: str, verdict: PlacementVerdict, warned: bool) -> None:
    found = verdict_on(mode, verdict)

    reported = f"placement check: {verdict}: 0/3 nodes are available: 3 say so."
    assert list(found.warnings) == ([reported] if warned else [])


def test_nobody_is_refused_for_an_infeasible_that_is_in_doubt() -> None:
    found = verdict_on("deny", "Infeasible", doubt="not known")

    assert found.outcome == "Patched"
    reported = "placement check: Infeasible: 0/3 nodes are available: 3 say so."
    assert list(found.warnings) == [reported, "placement check: not refused: not known"]
    assert list(verdict_on("warn", "Infeasible", doubt="not known").warnings) == [reported]


def test_denial_has_a_reason_and_the_placement() -> None:
    found = verdict_on("deny", "Infeasible")

    assert isinstance(found, Denied)
    assert (found.denial.code, found.denial.reason) == (403, "Forbidden")
    assert found.denial.message == (
        "no node of this cluster can take this pod as it is: 0/3 nodes are available: 3 say so."
    )
    placement = placement_of(found)
    assert placement is not None
    assert placement.verdict == "Infeasible"


def test_the_scorer_is_not_asked_when_the_check_is_off() -> None:
    class Offended(ScorerOfNoNodes):
        def answer(self, *_: object) -> Any:
            raise AssertionError("asked all the same")

    found = admit_pod(
        POD, policy_with(placementCheck={"mode": "off"}), ClusterView(snapshot_from_documents([]), Offended())
    )

    assert found.outcome == "Patched"
    assert found.placement == Placement.unknown("the placement check is off")


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("mode", ["off", "warn"])
def test_the_patch_does_not_depend_on_the_cluster(mode: str, verdict: PlacementVerdict) -> None:
    alone = admit_pod(POD, policy_with(placementCheck={"mode": mode}))
    placed = verdict_on(mode, verdict)

    assert alone.outcome == "Patched"
    assert placed.outcome == "Patched"
    assert placed.operations == alone.operations


def test_user_reads_why_a_pod_of_an_unknown_placement_is_not_denied() -> None:
    found = verdict_on("deny", "Unknown", doubt="a card may be ill")

    assert [*found.warnings] == [
        "placement check: Unknown: 0/3 nodes are available: 3 say so.",
        "placement check: not refused: a card may be ill",
    ]

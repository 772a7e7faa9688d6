"""Parts of the answer for the pods of a template."""

import pytest

from tests.support.objects.builders import make_pod
from webhook.backends.references import GangRequest
from webhook.cli.inputs.workloads import Workload
from webhook.cli.predictions.answer_parts import in_gang_of_object, with_missing_kinds
from webhook.cli.predictions.checked_replicas import Answer
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.replicas.replicas import Replicas
from webhook.placement.scheduler import NOT_MODELLED
from webhook.policy.loader import built_in_policy


@pytest.mark.parametrize(
    ("kinds", "message"),
    [((), f"{NOT_MODELLED}."), (("Service", "ReplicaSet"), f"{NOT_MODELLED}: grant list of Service, ReplicaSet.")],
)
def test_the_message_names_the_remedy_for_missing_kinds(kinds: tuple[str, ...], message: str) -> None:
    found = with_missing_kinds(Placement.unknown(f"{NOT_MODELLED}."), kinds, "grant list of {kinds}")

    assert found.message == message


GANG = GangRequest("train", 4, "volcano", starts_whole=True)
WAITS = Placement("Waiting", None, 3, 0, "0/3 nodes are available.")
FITS = Placement("Feasible", "n", 3, 1, "", {"n": {"total": 1}})


def answer(placement: Placement) -> Answer:
    document = Document("f", make_pod("train").obj())
    replicas = Replicas(4, 2, {"n": 2}, placement, None, is_complete=True, snapshot=Snapshot.of(()))
    of = Workload(document, document, None, built_in_policy())
    return Answer(of, placement, replicas, without_pods=("n",), without_pending=("m",))


@pytest.mark.parametrize("placement", [WAITS, FITS], ids=["waits", "fits"])
def test_a_gang_that_an_empty_cluster_cannot_hold_is_infeasible(placement: Placement) -> None:
    """Nodes that would take one of its pods without others show no way out."""
    found = in_gang_of_object(answer(placement), GANG, GangFit("train", 4, 2, 0, most=3))

    assert (found.verdict, found.placement.node, found.placement.scores) == ("Infeasible", None, {})
    assert (found.without_pods, found.without_pending, found.gang) == ((), (), GANG)


def test_an_unknown_verdict_stays_unknown_in_a_gang_that_is_too_large() -> None:
    fit = GangFit("train", 4, 2, 0, most=3)

    assert in_gang_of_object(answer(Placement.unknown("x")), GANG, fit).verdict == "Unknown"


@pytest.mark.parametrize(("own", "nodes"), [(None, {"n": 2}), (FITS, {})])
def test_nodes_of_replicas_are_left_out_if_the_domain_decides(own: Placement | None, nodes: dict[str, int]) -> None:
    found = in_gang_of_object(answer(FITS), GANG, GangFit("train", 4, 4, 0, own=own))

    assert found.replicas is not None
    assert found.replicas.nodes == nodes
    assert (found.verdict, found.without_pods) == ("Feasible", ("n",))

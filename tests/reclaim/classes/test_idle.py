"""Pods whose cards have done nothing, by their metrics."""

import pytest

from placement_reclaim.classes.pods import PodUse
from tests.reclaim.reports import report
from tests.support.objects.builders import PodBuilder
from tests.support.objects.held import HOUR, NOW_SECONDS, ago, card_pod, gpu_node, waiting

NODE = gpu_node("n1")
NOTEBOOK = card_pod("nb-0", "n1", 2).owner("StatefulSet", "nb", api_version="apps/v1")
IDLE, BUSY = (0, 43), (0.01, 43)


def use(*cards: tuple[float | None, float], memory_mib: float = 0, requests: float | None = None) -> PodUse:
    found = PodUse(memory_mib=memory_mib, requests=requests)
    for activity, watts in cards:
        found.add_card(activity, watts)
    return found


def test_a_pod_whose_cards_have_done_nothing_is_reported() -> None:
    found = use(IDLE, (0, 40), memory_mib=30720)

    (row,) = report(NODE, NOTEBOOK, uses={("team-a", "nb-0"): found}, older_than=HOUR)

    assert (row.reason, row.count, row.since) == ("idle", 2, (NOW_SECONDS - HOUR, True, True))
    assert (row.why, row.remedy.text) == ("GPU 0 %, at most 43 W, 30 GiB in use", "owner: scale StatefulSet nb to 0")
    assert [*row.remedy.commands] == ["scale statefulset nb -n team-a --replicas=0"]


def test_a_server_without_requests_is_reported_with_them() -> None:
    (row,) = report(NODE, NOTEBOOK, uses={("team-a", "nb-0"): use(IDLE, IDLE, requests=0)})

    assert row.why == "GPU 0 %, at most 43 W, 0 requests/s"


@pytest.mark.parametrize(
    ("pod", "found"),
    [
        pytest.param(NOTEBOOK, use(IDLE, BUSY), id="one card has worked"),
        pytest.param(NOTEBOOK, use(IDLE), id="a card has no metric"),
        pytest.param(NOTEBOOK, use(IDLE, (None, 0)), id="the metric of a card has a gap"),
        pytest.param(NOTEBOOK, use(IDLE, (0, 300)), id="its power says otherwise"),
        pytest.param(NOTEBOOK, use(IDLE, IDLE, requests=0.2), id="it has served requests"),
        pytest.param(card_pod("nb-0", "n1", 2, since=600), use(IDLE, IDLE), id="it has just started"),
        pytest.param(NOTEBOOK.deletion(ago(-HOUR)), use(IDLE, IDLE), id="it is within its grace period"),
        pytest.param(card_pod("nb-0", "n1", 2).owner("DaemonSet", "agent"), use(IDLE, IDLE), id="of a DaemonSet"),
    ],
)
def test_a_pod_is_not_idle_if(pod: PodBuilder, found: PodUse) -> None:
    assert report(NODE, pod, uses={("team-a", "nb-0"): found}) == []


def test_a_pod_is_in_one_row_only() -> None:
    pod = waiting(NOTEBOOK, "ImagePullBackOff", HOUR)

    assert [row.reason for row in report(NODE, pod, uses={("team-a", "nb-0"): use(IDLE, IDLE)})] == ["image-pull"]

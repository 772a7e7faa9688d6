"""Pods by class and row of the node."""

from collections import Counter

from tests.cluster.index.terms import anti_affinity, info_of
from tests.support.objects.builders import make_pod
from webhook.cluster.index.running_pods import RunningPods
from webhook.kube.selectors import LabelRequirement

_WEB = {"matchLabels": {"app": "web"}}


def test_pods_that_are_added_are_selected_and_carry_terms() -> None:
    web, away = make_pod().namespace("x").label("app", "web"), anti_affinity(labelSelector=_WEB)
    table = RunningPods.of([info_of("a", web), info_of("b")])

    more = table.with_added({1: info_of("b", web, away).pods, 0: info_of("a", away).pods})

    is_web = (LabelRequirement("app", "In", ("web",)),)
    assert Counter(more.rows_selected(frozenset(("x",)), is_web).tolist()) == {0: 1, 1: 1}
    assert Counter(more.rows_selected(None, ()).tolist()) == {0: 2, 1: 2}
    (carried,) = more.carried("x", {}, {"app": "web"})
    rows, times = more.carrier_rows(carried)
    assert dict(zip(rows.tolist(), times.tolist(), strict=True)) == {0: 1, 1: 1}
    assert not table.has_terms


def test_table_is_fragmented_after_many_pods_are_deleted() -> None:
    table = RunningPods.of([info_of("a")])
    for index in range(1002):
        assert not table.is_fragmented
        table = table.with_rows({0: info_of("a", make_pod().label("index", str(index)))})
    table = table.with_rows({0: info_of("a")})
    assert table.is_fragmented

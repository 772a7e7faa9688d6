"""Pods that selectors and terms cannot tell apart are one class."""

from typing import Any

from tests.cluster.index.numbered import numbered
from tests.support.objects.builders import make_pod
from webhook.cluster.index.pod_classes import PodClasses
from webhook.kube.selectors import LabelRequirement

_WEB, _DB, _BARE = make_pod().label("app", "web"), make_pod().label("app", "db"), make_pod()


def test_classes_are_numbered_from_zero_and_equal_pods_are_one() -> None:
    classes = PodClasses()
    assert len(classes) == 0
    assert numbered(classes, _WEB, _DB, _WEB, _BARE, _DB.namespace("other")) == [0, 1, 0, 2, 3]
    assert len(classes) == 4


def _near(**term: Any) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", **term}]}}


def test_terms_that_choose_namespaces_by_labels_are_found_by_the_labels_of_a_pod() -> None:
    classes = PodClasses()
    selecting = {"labelSelector": {"matchLabels": {"app": "web"}}}
    by_labels = _near(**selecting, namespaceSelector={"matchLabels": {"team": "a"}})
    everywhere = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
    numbered(
        classes,
        make_pod().affinity(by_labels),
        make_pod().affinity(_near(**selecting)),
        make_pod().affinity(_near(**everywhere, namespaceSelector={"matchLabels": {"team": "b"}})),
    )

    def found(**labels: str) -> list[list[int]]:
        return [each.classes.tolist() for each in classes.carried_by_namespace_labels(labels)]

    assert sorted(found(app="web")) == [[0], [2]]
    assert found(app="db") == [[2]]
    assert found(other="web") == []
    assert classes.term_keys == {"app"}


def test_what_is_added_to_a_copy_is_not_in_the_original_and_the_other_way_round() -> None:
    def facts(classes: PodClasses) -> tuple[Any, ...]:
        selector = (LabelRequirement("app", "Exists"),)
        carried = sorted(each.classes.tolist() for each in classes.carried_by_namespace_labels({"app": "web"}))
        masks = (classes.selected(len(classes), None, selector).tolist(), classes.terminating(len(classes)).tolist())
        return len(classes), *masks, classes.namespaces, classes.term_keys, carried

    near = _near(labelSelector={"matchLabels": {"app": "web"}}, namespaceSelector={"matchLabels": {"team": "a"}})
    other = _near(labelSelector={"matchLabels": {"x": "y"}})
    original = PodClasses()
    first = [_WEB, make_pod().affinity(near)]
    numbered(original, *first)
    before = facts(original)

    copied = original.copy()
    assert facts(copied) == before
    more = [_DB.namespace("b"), make_pod().label("n", "1").affinity(near), make_pod().affinity(other)]
    assert numbered(copied, *first, *more) == [0, 1, 2, 3, 4]
    assert facts(original) == before
    after = facts(copied)
    assert numbered(original, _BARE.namespace("c"), make_pod().label("m", "1").affinity(near)) == [2, 3]
    assert facts(copied) == after

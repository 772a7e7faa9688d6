"""Edits of queues, priority, amounts and spreading."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.objects.frozen import frozen
from webhook.backends.backend import annotation
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.edits.edits import CHANGED, KEPT, Effect, PreferPodAffinity, SetDomain
from webhook.mutation.edits.scheduling_edits import (
    GatherByAffinity,
    SetAmount,
    SetField,
    SetPriorityClass,
    SpreadByAntiAffinity,
    SpreadByConstraint,
)
from webhook.mutation.replica_group import ReplicaGroup

Pod = dict[str, Any]
QUEUE = SetField(annotation("queue", "team-a"))
PRIORITY = SetPriorityClass("high", default_class="standard")
HINT = PreferPodAffinity(100, "jobtype", "binpacked", "host")
GROUP = ReplicaGroup("app", "web", is_added=False)
CONSTRAINT = SpreadByConstraint("zone", GROUP, HINT, True, 1, "ScheduleAnyway")


def applied(edit: Any, pod: Pod) -> tuple[PodEditor, Effect]:
    editor = PodEditor(frozen(pod))
    return editor, edit.apply(editor)


def test_a_field_is_set_where_it_is_missing() -> None:
    editor, effect = applied(QUEUE, {"metadata": {}})

    assert effect.changed
    assert editor.pod == {"metadata": {"annotations": {"queue": "team-a"}}}
    assert not applied(QUEUE, editor.pod)[1].changed


def test_another_value_of_the_user_wins_with_a_warning() -> None:
    editor, effect = applied(QUEUE, {"metadata": {"annotations": {"queue": "mine"}}})

    assert (effect.changed, editor.operations) == (False, [])
    assert "of the pod wins over team-a" in effect.warnings[0]
    assert effect.kept_value == "annotation queue=mine"


@pytest.mark.parametrize("spec", [{}, {"priorityClassName": "standard", "priority": 5, "preemptionPolicy": "Never"}])
def test_a_class_replaces_the_default_with_its_values(spec: Pod) -> None:
    editor, effect = applied(PRIORITY, {"spec": spec})

    assert (effect.changed, editor.pod) == (True, {"spec": {"priorityClassName": "high"}})


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"priorityClassName": "low"}, "priorityClassName low"),
        ({"priority": 7}, "priority 7"),
        ({"preemptionPolicy": "Never"}, "preemptionPolicy Never"),
    ],
)
def test_a_class_or_a_value_of_the_user_is_kept(spec: Pod, kept: str) -> None:
    editor, effect = applied(PRIORITY, {"spec": spec})

    assert (effect.changed, effect.kept_value, editor.operations) == (False, kept, [])


def test_an_amount_is_set_where_there_is_none() -> None:
    edit = SetAmount(("spec", "containers", 0, "resources", "limits", "cpu"), "2")
    editor, effect = applied(edit, {"spec": {"containers": [{}]}})

    assert (str(edit), effect.changed) == ("set spec.containers[0].resources.limits.cpu=2", True)
    assert editor.pod == {"spec": {"containers": [{"resources": {"limits": {"cpu": "2"}}}]}}
    assert not applied(edit, editor.pod)[1].changed


def test_a_constraint_is_added_once() -> None:
    editor, effect = applied(CONSTRAINT, {"metadata": {"labels": {"app": "web"}}, "spec": {}})

    (constraint,) = editor.pod["spec"]["topologySpreadConstraints"]
    assert (effect.changed, constraint["topologyKey"], constraint["maxSkew"]) == (True, "zone", 1)
    assert constraint["labelSelector"] == {"matchLabels": {"app": "web"}}
    assert not applied(CONSTRAINT, editor.pod)[1].changed


@pytest.mark.parametrize("weight", [None, 50])
def test_anti_affinity_is_added_once_required_or_preferred(weight: int | None) -> None:
    edit = SpreadByAntiAffinity("host", GROUP, HINT, False, weight)
    editor, effect = applied(edit, {"metadata": {"labels": {"app": "web"}}, "spec": {}})

    (kind,) = editor.pod["spec"]["affinity"]["podAntiAffinity"]
    assert (effect.changed, kind.startswith("required")) == (True, weight is None)
    assert not applied(edit, editor.pod)[1].changed


def test_a_constraint_of_the_user_over_the_same_key_wins() -> None:
    pod = {"metadata": {}, "spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 3}]}}
    editor, effect = applied(CONSTRAINT, pod)

    assert (effect.changed, editor.operations) == (False, [])
    assert effect.kept_value == "topologySpreadConstraints over zone"
    assert "wins over its annotation spread" in effect.warnings[0]


GANG = ReplicaGroup("gang", "bert", is_added=True)
TERM = {"labelSelector": {"matchLabels": {"gang": "bert"}}, "topologyKey": "rack"}


@pytest.mark.parametrize("weight", [None, 50])
def test_affinity_to_the_gang_is_added_once_with_its_label(weight: int | None) -> None:
    edit = GatherByAffinity("rack", GANG, HINT, False, weight)
    editor, effect = applied(edit, {"metadata": {}, "spec": {}})

    ((kind, (term,)),) = editor.pod["spec"]["affinity"]["podAffinity"].items()
    assert (effect.changed, kind.startswith("required")) == (True, weight is None)
    assert term == (TERM if weight is None else {"weight": 50, "podAffinityTerm": TERM})
    assert editor.pod["metadata"]["labels"] == {"gang": "bert"}
    assert not applied(edit, editor.pod)[1].changed


SELF, OTHERS = {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HARD, SOFT = {"whenUnsatisfiable": "DoNotSchedule"}, {"whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"affinity": {"podAffinity": {REQUIRED: [{"labelSelector": SELF, "topologyKey": "rack"}]}}}, "podAffinity"),
        ({"affinity": {"podAffinity": {REQUIRED: [{"labelSelector": SELF, "topologyKey": "zone"}]}}}, ""),
        (
            {"affinity": {"podAntiAffinity": {REQUIRED: [{"labelSelector": SELF, "topologyKey": "rack"}]}}},
            "podAntiAffinity",
        ),
        (
            {"topologySpreadConstraints": [{"labelSelector": SELF, "topologyKey": "rack", **HARD}]},
            "topologySpreadConstraints",
        ),
        ({"topologySpreadConstraints": [{"labelSelector": SELF, "topologyKey": "rack", **SOFT}]}, ""),
    ],
)
def test_what_the_user_states_about_pods_like_this_one_wins(spec: Pod, kept: str) -> None:
    edit = GatherByAffinity("rack", GANG, HINT, True, None)
    editor, effect = applied(edit, {"metadata": {"labels": {"app": "web"}}, "spec": spec})

    warning = f"spec: {kept} over rack of the pod wins over its annotation within, which adds nothing"
    assert (effect.changed, effect.warnings) == (not kept, (warning,) if kept else ())
    assert bool(editor.operations) is not bool(kept)


@pytest.mark.parametrize(
    ("term", "is_kept"),
    [
        ({"labelSelector": OTHERS, "topologyKey": "rack"}, True),
        ({"labelSelector": OTHERS, "topologyKey": "zone"}, True),
        ({"labelSelector": SELF, "topologyKey": "zone", "namespaces": ["b"]}, True),
        ({"labelSelector": SELF, "topologyKey": "zone", "namespaces": ["a", "b"]}, False),
        ({"labelSelector": SELF, "topologyKey": "zone", "namespaceSelector": {}}, False),
    ],
)
def test_a_gang_beside_other_pods_is_only_preferred_to_be_together(term: Pod, is_kept: bool) -> None:
    """With two required terms, its first pod would wait for a pod that matches both."""
    spec = {"affinity": {"podAffinity": {REQUIRED: [term]}}}
    pod = {"metadata": {"labels": {"app": "web"}, "namespace": "a"}, "spec": spec}

    _, effect = applied(GatherByAffinity("rack", GANG, HINT, True, None), pod)

    kept = "required podAffinity to other pods (with both, no first pod of the gang could start)"
    warning = f"spec: {kept} of the pod wins over its annotation within, which adds nothing"
    assert (effect.changed, effect.warnings) == (not is_kept, (warning,) if is_kept else ())
    assert applied(GatherByAffinity("rack", GANG, HINT, True, 50), pod)[1].changed


DOMAIN = SetDomain(
    (annotation("kai/topology", "racks"), annotation("kai/topology-required", "rack")), ("kai/topology",), True
)


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        ({}, {"kai/topology": "racks", "kai/topology-required": "rack"}),
        ({"kai/topology": "racks"}, {"kai/topology": "racks", "kai/topology-required": "rack"}),
        ({"kai/topology-preferred": "zone"}, {"kai/topology-preferred": "zone"}),
        ({"kai/topology-required": "zone"}, {"kai/topology-required": "zone"}),
    ],
)
def test_a_domain_is_set_as_a_whole_or_not_at_all(present: dict[str, str], wanted: dict[str, str]) -> None:
    editor, effect = applied(DOMAIN, {"metadata": {"annotations": present}})

    assert editor.pod["metadata"]["annotations"] == wanted
    assert bool(effect.warnings) is bool(effect.kept_value) is (wanted == present)
    assert not applied(DOMAIN, editor.pod)[1].changed


@pytest.mark.parametrize("labels", [None, {}, {"gang": "bert"}, {"gang": "other"}, {"app": "web"}])
@pytest.mark.parametrize("is_added", [True, False])
@pytest.mark.parametrize(
    "edit_of",
    [
        pytest.param(lambda group: GatherByAffinity("rack", group, HINT, True, None), id="required affinity"),
        pytest.param(lambda group: GatherByAffinity("rack", group, HINT, True, 7), id="preferred affinity"),
        pytest.param(lambda group: SpreadByAntiAffinity("rack", group, HINT, True, None), id="required anti-affinity"),
        pytest.param(lambda group: SpreadByAntiAffinity("rack", group, HINT, True, 7), id="preferred anti-affinity"),
        pytest.param(lambda group: SpreadByConstraint("rack", group, HINT, True, 1, "DoNotSchedule"), id="constraint"),
    ],
)
def test_a_pod_that_has_the_term_already_gets_the_label_of_its_group_if_the_webhook_defines_it(
    edit_of: Callable[[ReplicaGroup], Any], is_added: bool, labels: dict[str, str] | None
) -> None:
    """As a pod of a template with the term, from which another client has removed the label."""
    edit = edit_of(ReplicaGroup("gang", "bert", is_added=is_added))
    with_term = applied(edit, {"metadata": {}, "spec": {}})[0].pod
    pod = {**with_term, "metadata": {} if labels is None else {"labels": labels}}
    gets_label = is_added and "gang" not in (labels or {})

    editor, effect = applied(edit, pod)

    expected = {"gang": "bert", **(labels or {})} if gets_label else labels
    assert (effect, editor.pod["metadata"].get("labels")) == (CHANGED if gets_label else KEPT, expected)
    assert editor.pod["spec"] == with_term["spec"]
    assert len(editor.operations) == gets_label
    assert applied(edit, editor.pod)[1] == KEPT

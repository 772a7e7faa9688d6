"""Each kind of edit in each situation: what it adds, what it keeps, and its warnings."""

from copy import deepcopy
from typing import Any

import jsonpatch
import pytest

from tests.support.objects.frozen import frozen
from tests.support.work import calls_of
from webhook.kube.api.review_answer import fit_warnings
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.edits.edits import (
    AddLabel,
    AddToleration,
    Edit,
    Effect,
    PodTooLargeError,
    PreferPodAffinity,
    SetAnnotation,
    SetScheduler,
)
from webhook.mutation.edits.node_edits import PreferNode, RequireNode
from webhook.mutation.edits.node_terms import NodeLabelRequirement

Pod = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PENDING = "no node matches and the pod will stay Pending"

USAGE = RequireNode(NodeLabelRequirement("usage", "In", ("training", "hybrid")))
TRAINING = PreferNode(100, NodeLabelRequirement("usage", "In", ("training",)))
TAINT = AddToleration("usage", "training")
LABEL = AddLabel("jobtype", "binpacked", "others are not drawn to it")
PACKED = PreferPodAffinity(100, "jobtype", "binpacked", "host")
VOLCANO = SetScheduler("volcano", requested=True)
OURS = {"key": "usage", "operator": "In", "values": ["training", "hybrid"]}
OTHER = {"key": "zone", "operator": "Exists"}


def applied(edit: Edit, pod: Pod) -> tuple[Pod, Effect]:
    """Return the pod after `edit`; check that the original stays, and operations and repetition give the same."""
    editor = PodEditor(frozen(pod))
    effect = edit.apply(editor)
    assert effect.changed == bool(editor.operations) == (editor.pod != pod)
    assert jsonpatch.apply_patch(deepcopy(pod), deepcopy(editor.operations)) == editor.pod

    again = PodEditor(frozen(editor.pod))
    second = edit.apply(again)
    assert (second.changed, again.operations) == (False, [])
    assert (second.warnings, second.kept_value) == (effect.warnings, effect.kept_value)
    return editor.pod, effect


def required(*terms: Any) -> Pod:
    return {"spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}}


def preferred_nodes(*terms: Any) -> Pod:
    return {"spec": {"affinity": {"nodeAffinity": {PREFERRED: list(terms)}}}}


def preferred_pods(*terms: Any) -> Pod:
    return {"spec": {"affinity": {"podAffinity": {PREFERRED: list(terms)}}}}


def expression(operator: str, *values: str) -> dict[str, Any]:
    return {"key": "usage", "operator": operator} | ({"values": list(values)} if values else {})


def term(*expressions: Any, **fields: Any) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)} | fields


BY_NAME = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        pytest.param({"spec": {}}, required(term(OURS)), id="no affinity"),
        pytest.param({"spec": {"affinity": None}}, required(term(OURS)), id="null affinity"),
        pytest.param(
            {"spec": {"affinity": {"nodeAffinity": {REQUIRED: None}}}}, required(term(OURS)), id="null requirement"
        ),
        pytest.param(required(term(OTHER)), required(term(OTHER, OURS)), id="ANDed to another key"),
        pytest.param(
            required(term(OTHER), term(OTHER)), required(term(OTHER, OURS), term(OTHER, OURS)), id="into every term"
        ),
        pytest.param(
            required(term(OURS), term(OTHER)), required(term(OURS), term(OTHER, OURS)), id="only where it lacks"
        ),
        pytest.param(required(term(OTHER), {}), required(term(OTHER, OURS), {}), id="an empty term stays empty"),
        pytest.param(
            required(term(OTHER), term()),
            required(term(OTHER, OURS), term()),
            id="a term without expressions stays empty",
        ),
        pytest.param(
            required({"matchFields": BY_NAME}), required({"matchFields": BY_NAME} | term(OURS)), id="a term of fields"
        ),
        pytest.param(
            required({"matchFields": BY_NAME, "matchExpressions": None}),
            required({"matchFields": BY_NAME} | term(OURS)),
            id="a term of fields with null expressions",
        ),
        pytest.param(
            required(term(expression("In", "hybrid"))), required(term(expression("In", "hybrid"))), id="stricter"
        ),
        pytest.param(
            required(term(expression("In", "hybrid", "training"))),
            required(term(expression("In", "hybrid", "training"))),
            id="equal in another order",
        ),
        pytest.param(
            required(term(expression("In", "hybrid", "inference"))),
            required(term(expression("In", "hybrid", "inference"), OURS)),
            id="overlapping",
        ),
        pytest.param(required(term(expression("Exists"))), required(term(expression("Exists"), OURS)), id="wider"),
    ],
)
def test_a_requirement_is_anded_into_every_term_that_has_one(pod: Pod, wanted: Pod) -> None:
    assert applied(USAGE, pod) == (wanted, Effect(changed=pod != wanted))


WANTED = "the policy's usage in [training, hybrid]"
BOTH = "a node must meet both, so"
CLASH = f"usage In [inference] contradicts {WANTED}; {BOTH}"


@pytest.mark.parametrize(
    ("pod", "warnings"),
    [
        pytest.param(
            required(term(expression("In", "inference"))),
            [f"nodeSelectorTerms[0]: {CLASH} {PENDING}"],
            id="the only term",
        ),
        pytest.param(
            required(term(OTHER), term(expression("In", "inference"))),
            [f"nodeSelectorTerms[1]: {CLASH} this term matches no node"],
            id="one of two terms",
        ),
        pytest.param(
            required(term(expression("In", "inference")), {}, term(expression("In", "inference"))),
            [f"nodeSelectorTerms[0]: {CLASH} {PENDING}", f"nodeSelectorTerms[2]: {CLASH} {PENDING}"],
            id="all terms but an empty one",
        ),
        pytest.param(
            {"spec": {"nodeSelector": {"usage": "inference"}}},
            [f"nodeSelector usage=inference contradicts {WANTED}; {BOTH} {PENDING}"],
            id="nodeSelector",
        ),
        pytest.param(
            {"spec": {"nodeSelector": {"usage": ""}}},
            [f"nodeSelector usage= contradicts {WANTED}; {BOTH} {PENDING}"],
            id="an empty value in nodeSelector",
        ),
        pytest.param(
            {
                "spec": {"nodeSelector": {"usage": "x"}}
                | required(term(expression("NotIn", "training", "hybrid")))["spec"]
            },
            [
                f"nodeSelector usage=x contradicts {WANTED}; {BOTH} {PENDING}",
                f"nodeSelectorTerms[0]: usage NotIn [training, hybrid] contradicts {WANTED}; {BOTH} {PENDING}",
            ],
            id="nodeSelector and term",
        ),
        pytest.param(
            required(),
            ["no nodeSelectorTerm has a requirement: none matches a node, and the pod will stay Pending"],
            id="no terms",
        ),
        pytest.param(
            required({}),
            ["no nodeSelectorTerm has a requirement: none matches a node, and the pod will stay Pending"],
            id="an empty term alone",
        ),
        pytest.param({"spec": {"nodeSelector": {"usage": "hybrid", "zone": "a"}}}, [], id="nodeSelector agrees"),
        pytest.param({"spec": {"nodeSelector": None}}, [], id="null nodeSelector"),
    ],
)
def test_contradiction_is_reported_with_its_consequence(pod: Pod, warnings: list[str]) -> None:
    after, effect = applied(USAGE, pod)

    assert list(effect.warnings) == warnings
    assert after["spec"].get("nodeSelector") == pod["spec"].get("nodeSelector")


@pytest.mark.parametrize("terms", [9, 10, 11])
def test_first_ten_contradictions_are_reported(terms: int) -> None:
    _, effect = applied(USAGE, required(*(term(expression("In", "inference")) for _ in range(terms))))
    reported = [f"nodeSelectorTerms[{index}]: {CLASH} {PENDING}" for index in range(min(terms, 10))]
    assert list(effect.warnings) == reported


# Three times the size of this requirement can be stored in etcd, in 1.5 MiB; four times cannot.
WIDE = RequireNode(NodeLabelRequirement("usage", "In", ("x" * (1536 * 1024 // 3 - 100),)))


def test_a_requirement_is_added_to_as_many_terms_as_a_pod_can_grow_by() -> None:
    pod, effect = applied(WIDE, required(*(term(OTHER) for _ in range(3))))
    assert effect.changed
    assert pod == required(*[term(OTHER, WIDE.requirement.to_json())] * 3)


def test_one_term_more_makes_the_pod_too_large() -> None:
    with pytest.raises(PodTooLargeError, match=r"nodeSelectorTerms: Forbidden: too many terms \(4\)"):
        WIDE.apply(PodEditor(frozen(required(*[term(OTHER)] * 4))))


def test_terms_that_need_no_requirement_do_not_count_toward_the_growth() -> None:
    present = term(WIDE.requirement.to_json())
    pod, effect = applied(WIDE, required(*(term(OTHER) for _ in range(3)), term(), present))

    assert effect.changed
    assert pod == required(*[term(OTHER, WIDE.requirement.to_json())] * 3, term(), present)


def test_requirements_on_several_keys_stand_in_one_term() -> None:
    memory = RequireNode(NodeLabelRequirement("memory", "Gt", ("79999",)))

    pod, _ = applied(memory, applied(USAGE, {"spec": {}})[0])

    assert pod == required(term(OURS, {"key": "memory", "operator": "Gt", "values": ["79999"]}))


MINE = {"weight": 100, "preference": term(expression("In", "training"))}


@pytest.mark.parametrize(
    ("terms", "added"),
    [
        pytest.param([], True, id="none"),
        pytest.param([MINE], False, id="the same"),
        pytest.param([MINE | {"weight": 1}], False, id="the same with another weight"),
        pytest.param([{"weight": 5, "preference": term(OTHER)}, MINE], False, id="the same among others"),
        pytest.param(
            [{"weight": 5, "preference": term(expression("In", "training"), OTHER)}], True, id="a narrower one"
        ),
        pytest.param(
            [{"weight": 5, "preference": term(expression("In", "training"), matchFields=BY_NAME)}],
            True,
            id="one for a node",
        ),
        pytest.param([{"weight": 5, "preference": {}}], True, id="an empty one"),
        pytest.param([{"weight": 5, "preference": None}], True, id="a null one"),
        pytest.param([{"weight": 5}], True, id="one without preference"),
    ],
)
def test_preference_is_added_unless_the_user_has_the_same(terms: list[Any], added: bool) -> None:
    pod, effect = applied(TRAINING, preferred_nodes(*terms))

    assert pod == preferred_nodes(*terms, *([MINE] if added else []))
    assert effect == Effect(changed=added)


WANTED_POOLS = (
    (100, NodeLabelRequirement("usage", "In", ("training",))),
    (10, NodeLabelRequirement("usage", "In", ("hybrid",))),
)
HYBRID = {"weight": 10, "preference": term(expression("In", "hybrid"))}
NOT_ADDED = (
    "the pod's own preferred node affinity for usage wins over the policy's, which is not added: prefer node usage"
)


@pytest.mark.parametrize(
    "preference",
    [
        pytest.param(term(expression("In", "hybrid")), id="another value"),
        pytest.param(term(expression("In", "training", "hybrid")), id="more values"),
        pytest.param(term(expression("NotIn", "training")), id="every other value"),
        pytest.param(term(expression("In", "hybrid"), OTHER), id="another value and label"),
    ],
)
def test_preference_of_the_user_for_other_values_wins_with_a_warning(preference: Any) -> None:
    """Weights add up, so the policy's 100 would outweigh the user's 5."""
    theirs = preferred_nodes({"weight": 5, "preference": preference})

    pod, effect = applied(TRAINING, theirs)

    assert pod == theirs
    assert effect.warnings == (f"{NOT_ADDED} in [training] (weight 100)",)


def test_preferences_of_the_policy_do_not_contradict_each_other() -> None:
    once, _ = applied(PreferNode(*WANTED_POOLS[0], WANTED_POOLS), {"spec": {}})

    both, effect = applied(PreferNode(*WANTED_POOLS[1], WANTED_POOLS), once)

    assert both == preferred_nodes(MINE, HYBRID)
    assert effect == Effect(changed=True)


def test_preference_of_the_policy_with_a_weight_of_the_user_is_the_users() -> None:
    """With the policy's 10 for hybrid nodes beside it, the pod would be drawn to those."""
    theirs = preferred_nodes(MINE | {"weight": 1})

    pod, effect = applied(PreferNode(*WANTED_POOLS[1], WANTED_POOLS), theirs)

    assert pod == theirs
    assert effect.warnings == (f"{NOT_ADDED} in [hybrid] (weight 10)",)


TOLERATION = {"key": "usage", "operator": "Equal", "value": "training", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "added"),
    [
        pytest.param(TOLERATION, False, id="the same"),
        pytest.param({"key": "usage", "value": "training", "effect": "NoSchedule"}, False, id="Equal left out"),
        pytest.param({"key": "usage", "value": "training"}, False, id="every effect"),
        pytest.param({"key": "usage", "operator": "Exists", "effect": "NoSchedule"}, False, id="every value"),
        pytest.param({"operator": "Exists"}, False, id="everything"),
        pytest.param({"operator": "Exists", "effect": "NoSchedule"}, False, id="every key"),
        pytest.param(TOLERATION | {"tolerationSeconds": 5}, False, id="a time, which NoSchedule has not"),
        pytest.param(TOLERATION | {"value": "hybrid"}, True, id="another value"),
        pytest.param(TOLERATION | {"key": "other"}, True, id="another key"),
        pytest.param(TOLERATION | {"effect": "NoExecute"}, True, id="another effect"),
        pytest.param({"operator": "Exists", "effect": "PreferNoSchedule"}, True, id="every key of another effect"),
        pytest.param({"key": "usage"}, True, id="an empty value"),
    ],
)
def test_a_toleration_is_added_unless_another_covers_it(toleration: dict[str, Any], added: bool) -> None:
    pod, effect = applied(TAINT, {"spec": {"tolerations": [toleration]}})

    assert pod == {"spec": {"tolerations": [toleration, TOLERATION] if added else [toleration]}}
    assert effect == Effect(changed=added)


EVERY_VALUE = {"key": "usage", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "added"),
    [
        pytest.param(EVERY_VALUE, False, id="the same"),
        pytest.param({"key": "usage", "operator": "Exists"}, False, id="every effect"),
        pytest.param({"operator": "Exists"}, False, id="everything"),
        pytest.param({"operator": "Exists", "effect": "NoSchedule"}, False, id="every key"),
        pytest.param(TOLERATION, True, id="one value"),
        pytest.param({"key": "usage", "value": "", "effect": "NoSchedule"}, True, id="an empty value"),
        pytest.param(EVERY_VALUE | {"effect": "NoExecute"}, True, id="another effect"),
        pytest.param(EVERY_VALUE | {"key": "other"}, True, id="another key"),
    ],
)
def test_a_toleration_of_every_value_is_added_unless_another_covers_it(toleration: dict[str, Any], added: bool) -> None:
    pod, effect = applied(AddToleration("usage", operator="Exists"), {"spec": {"tolerations": [toleration]}})

    assert pod == {"spec": {"tolerations": [toleration, EVERY_VALUE] if added else [toleration]}}
    assert effect == Effect(changed=added)


def test_consequence_of_a_contradiction_stands_in_what_clients_see() -> None:
    """A pod names all products that will do, and its nodeSelector another one."""
    products = tuple(f"NVIDIA-A100-SXM4-{size}GB" for size in range(10, 20))
    edit = RequireNode(NodeLabelRequirement("nvidia.com/gpu.product", "In", products))

    _, effect = applied(edit, {"spec": {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}})

    (warning,) = fit_warnings(effect.warnings)
    assert warning.endswith(PENDING)
    assert str(edit) == f"require node nvidia.com/gpu.product in [{', '.join(products)}]"


def test_a_toleration_is_looked_up_among_those_of_the_user() -> None:
    """A pod can have ten thousand tolerations, and name a hundred products."""

    def work(number: int) -> int:
        others = [{"key": f"k{each}", "operator": "Exists"} for each in range(number)]
        editor = PodEditor({"spec": {"tolerations": [*others, TOLERATION]}})
        assert TAINT.apply(editor) == Effect(changed=False)
        return calls_of(lambda: TAINT.apply(editor))

    # The collector of garbage may run in between and call a few functions.
    assert work(1000) < work(1) + 100


FOR_AN_HOUR = {"key": "usage", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}


@pytest.mark.parametrize(
    ("toleration", "added"),
    [
        pytest.param(FOR_AN_HOUR, False, id="the same"),
        pytest.param({"operator": "Exists"}, False, id="without limit"),
        pytest.param(FOR_AN_HOUR | {"tolerationSeconds": 3601}, False, id="longer"),
        pytest.param(FOR_AN_HOUR | {"tolerationSeconds": 300}, True, id="shorter"),
    ],
)
def test_a_toleration_for_a_time_is_added_unless_another_lasts_as_long(toleration: dict[str, Any], added: bool) -> None:
    edit = AddToleration("usage", effect="NoExecute", operator="Exists", seconds=3600)

    pod, _ = applied(edit, {"spec": {"tolerations": [toleration]}})

    assert pod == {"spec": {"tolerations": [toleration, FOR_AN_HOUR] if added else [toleration]}}


@pytest.mark.parametrize(
    ("toleration", "added"),
    [
        pytest.param({"key": "usage", "value": "training"}, False, id="the same"),
        pytest.param({"key": "usage", "operator": "Exists"}, False, id="every value"),
        pytest.param({"operator": "Exists"}, False, id="everything"),
        pytest.param(TOLERATION, True, id="one effect"),
        pytest.param({"key": "usage", "operator": "Exists", "tolerationSeconds": 9}, True, id="for a time"),
    ],
)
def test_a_toleration_of_every_effect_is_added_unless_another_covers_it(
    toleration: dict[str, Any], added: bool
) -> None:
    pod, _ = applied(AddToleration("usage", "training", ""), {"spec": {"tolerations": [toleration]}})

    ours = {"key": "usage", "operator": "Equal", "value": "training"}
    assert pod == {"spec": {"tolerations": [toleration, ours] if added else [toleration]}}


def test_a_toleration_of_an_earlier_edit_is_not_added_again() -> None:
    editor = PodEditor({"spec": {"tolerations": [{"key": "other"}]}})

    assert [TAINT.apply(editor).changed for _ in range(2)] == [True, False]
    assert len(editor.operations) == 1


@pytest.mark.parametrize("spec", [{}, {"tolerations": None}, {"tolerations": []}], ids=["missing", "null", "empty"])
def test_a_first_toleration_is_added(spec: dict[str, Any]) -> None:
    assert applied(TAINT, {"spec": spec})[0] == {"spec": {"tolerations": [TOLERATION]}}


@pytest.mark.parametrize("present", ["nightly", ""], ids=["another value", "an empty value"])
def test_label_of_the_user_wins_with_a_warning(present: str) -> None:
    pod, effect = applied(LABEL, {"metadata": {"labels": {"jobtype": present}}})

    assert pod["metadata"]["labels"] == {"jobtype": present}
    assert effect.kept_value == f"label jobtype={present}"
    assert effect.warnings == (
        f"label jobtype={present} of the pod wins over the policy's jobtype=binpacked: others are not drawn to it",
    )


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ({}, {"jobtype": "binpacked"}),
        ({"labels": None}, {"jobtype": "binpacked"}),
        ({"labels": {"a": "b"}}, {"a": "b", "jobtype": "binpacked"}),
        ({"labels": {"jobtype": None}}, {"jobtype": "binpacked"}),
        ({"labels": {"jobtype": "binpacked"}}, {"jobtype": "binpacked"}),
    ],
    ids=["none", "null", "another", "a null value", "the same"],
)
def test_a_label_is_added_where_it_is_missing(metadata: dict[str, Any], wanted: dict[str, str]) -> None:
    pod, effect = applied(LABEL, {"metadata": metadata})

    assert pod["metadata"]["labels"] == wanted
    assert effect == Effect(changed=metadata.get("labels") != wanted)


PACKED_PODS = {"key": "jobtype", "operator": "In", "values": ["binpacked"]}
HINT: dict[str, Any] = {
    "labelSelector": {"matchExpressions": [PACKED_PODS]},
    "namespaceSelector": {},
    "topologyKey": "host",
}


@pytest.mark.parametrize(
    ("theirs", "added"),
    [
        pytest.param(HINT, False, id="the same"),
        pytest.param(HINT | {"labelSelector": {"matchLabels": {"jobtype": "binpacked"}}}, False, id="by matchLabels"),
        pytest.param(HINT | {"topologyKey": "zone"}, True, id="another topology"),
        pytest.param(HINT | {"namespaceSelector": None}, True, id="its own namespace alone"),
        pytest.param(HINT | {"namespaceSelector": {"matchLabels": {"a": "b"}}}, True, id="some namespaces"),
        pytest.param(HINT | {"labelSelector": {"matchLabels": {"jobtype": "other"}}}, True, id="another value"),
        pytest.param(
            HINT | {"labelSelector": {"matchLabels": {"jobtype": "binpacked", "a": "b"}}}, True, id="narrower labels"
        ),
        pytest.param(
            HINT | {"labelSelector": {"matchExpressions": [PACKED_PODS, OTHER]}}, True, id="narrower expressions"
        ),
        pytest.param(
            HINT | {"labelSelector": HINT["labelSelector"] | {"matchLabels": {"a": "b"}}}, True, id="narrower by both"
        ),
        pytest.param(HINT | {"matchLabelKeys": ["pod-template-hash"]}, True, id="narrower by its own revision"),
        pytest.param(HINT | {"mismatchLabelKeys": ["tenant"]}, True, id="narrower by others' labels"),
        pytest.param(HINT | {"labelSelector": {}}, True, id="every pod"),
        pytest.param(HINT | {"labelSelector": None}, True, id="no pod"),
        pytest.param({}, True, id="an empty term"),
        pytest.param(None, True, id="a null term"),
    ],
)
def test_pod_affinity_is_added_unless_the_user_has_the_same(theirs: Any, added: bool) -> None:
    """Whatever its weight."""
    before = {"weight": 3, "podAffinityTerm": theirs}

    pod, effect = applied(PACKED, preferred_pods(before))

    assert pod == preferred_pods(before, *([{"weight": 100, "podAffinityTerm": HINT}] if added else []))
    assert effect == Effect(changed=added)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchExpressions": [{"key": "jobtype", "operator": "In", "values": ["other"]}]},
        {"matchExpressions": [{"key": "jobtype", "operator": "NotIn", "values": ["binpacked"]}]},
        {"matchExpressions": [{"key": "team", "operator": "In", "values": ["binpacked"]}]},
        {"matchExpressions": HINT["labelSelector"]["matchExpressions"] * 2},
        {**HINT["labelSelector"], "matchLabels": {"jobtype": "binpacked"}},
        {"matchLabels": {"jobtype": "other"}},
        {"matchLabels": {"jobtype": "binpacked", "team": "a"}},
        {},
        None,
    ],
    ids=str,
)
def test_a_term_of_the_user_for_other_pods_does_not_stand_for_the_hint(selector: Any) -> None:
    before = {"weight": 3, "podAffinityTerm": HINT | {"labelSelector": selector}}

    pod, effect = applied(PACKED, preferred_pods(before))

    assert pod == preferred_pods(before, {"weight": 100, "podAffinityTerm": HINT})
    assert effect.changed


SAME_NAMESPACE = {key: value for key, value in HINT.items() if key != "namespaceSelector"}


@pytest.mark.parametrize(
    ("theirs", "added"),
    [
        pytest.param(SAME_NAMESPACE, False, id="the same"),
        pytest.param(SAME_NAMESPACE | {"namespaces": []}, False, id="an empty list of namespaces"),
        pytest.param(SAME_NAMESPACE | {"namespaces": ["other"]}, True, id="another namespace"),
        pytest.param(HINT, True, id="all namespaces"),
    ],
)
def test_pod_affinity_of_the_same_namespace_names_no_namespaces(theirs: Any, added: bool) -> None:
    """A ResourceQuota of scope CrossNamespacePodAffinity counts terms with namespaces or a namespaceSelector."""
    before = {"weight": 3, "podAffinityTerm": theirs}

    pod, _ = applied(PreferPodAffinity(100, "jobtype", "binpacked", "host", "same"), preferred_pods(before))

    assert pod == preferred_pods(before, *([{"weight": 100, "podAffinityTerm": SAME_NAMESPACE}] if added else []))


def test_required_and_anti_affinity_of_the_user_are_no_hints() -> None:
    affinity: dict[str, Any] = {
        "podAffinity": {REQUIRED: [HINT]},
        "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": HINT}]},
    }

    pod, _ = applied(PACKED, {"spec": {"affinity": affinity}})

    hint = {PREFERRED: [{"weight": 100, "podAffinityTerm": HINT}]}
    assert pod["spec"]["affinity"] == affinity | {"podAffinity": affinity["podAffinity"] | hint}


@pytest.mark.parametrize(
    ("present", "requested", "wanted", "warned"),
    [
        pytest.param(None, False, "volcano", False, id="none"),
        pytest.param("", False, "volcano", False, id="an empty one"),
        pytest.param("default-scheduler", False, "volcano", False, id="the default one"),
        pytest.param("volcano", True, "volcano", False, id="the same"),
        pytest.param("kai-scheduler", False, "kai-scheduler", False, id="another, against the type's"),
        pytest.param("kai-scheduler", True, "kai-scheduler", True, id="another, against the annotation's"),
    ],
)
def test_a_scheduler_is_chosen_where_the_pod_has_the_default(
    present: str | None, requested: bool, wanted: str, warned: bool
) -> None:
    pod, effect = applied(SetScheduler("volcano", requested), {"spec": {"schedulerName": present}})

    assert pod == {"spec": {"schedulerName": wanted}}
    assert bool(effect.warnings) is warned


@pytest.mark.parametrize("spec", [{}, {"schedulerName": "default-scheduler"}], ids=["none", "the default one"])
def test_to_ask_for_the_default_scheduler_changes_nothing(spec: dict[str, Any]) -> None:
    assert applied(SetScheduler("default-scheduler", requested=True), {"spec": spec}) == (
        {"spec": spec},
        Effect(changed=False),
    )


@pytest.mark.parametrize(
    "metadata",
    [{}, {"annotations": None}, {"annotations": {"p": "old"}}, {"annotations": {"p": "new"}}],
    ids=["none", "null", "another", "the same"],
)
def test_annotation_of_the_webhook_overrides_the_user(metadata: dict[str, Any]) -> None:
    pod, effect = applied(SetAnnotation("p", "new"), {"metadata": metadata})

    assert pod == {"metadata": {"annotations": {"p": "new"}}}
    assert effect.warnings == ()


@pytest.mark.parametrize(
    ("edit", "reported"),
    [
        (USAGE, "require node usage in [training, hybrid]"),
        (RequireNode(NodeLabelRequirement("memory", "Gt", ("79999",))), "require node memory > 79999"),
        (RequireNode(NodeLabelRequirement("k", "Gt", ("9",), "80Gi less 5 %")), "require node k > 9 (80Gi less 5 %)"),
        (RequireNode(NodeLabelRequirement("k", "NotIn", ("a", "b"))), "require node k not in [a, b]"),
        (RequireNode(NodeLabelRequirement("k", "Exists")), "require node k exists"),
        (AddToleration("k", operator="Exists"), "tolerate k=*:NoSchedule"),
        (AddToleration("k", "v", "NoExecute", seconds=60), "tolerate k=v:NoExecute for 60 s"),
        (AddToleration("k", "v", ""), "tolerate k=v:*"),
        (TRAINING, "prefer node usage in [training] (weight 100)"),
        (TAINT, "tolerate usage=training:NoSchedule"),
        (LABEL, "label jobtype=binpacked"),
        (PACKED, "prefer host with pods jobtype=binpacked (weight 100)"),
        (
            PreferPodAffinity(100, "jobtype", "binpacked", "host", "same"),
            "prefer host with pods jobtype=binpacked of the same namespace (weight 100)",
        ),
        (VOLCANO, "scheduler volcano"),
        (SetAnnotation("p", "new"), "annotation p=new"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_edit_describes_itself(edit: Edit, reported: str) -> None:
    assert str(edit) == reported

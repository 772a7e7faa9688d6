"""A new rule is one function and one row."""

from inspect import getmembers, isfunction
from typing import Any

import pytest
from pydantic.alias_generators import to_snake

from tests.support.admission import DOMAIN, TYPE, admit_pod, policy_with
from tests.support.objects.builders import make_pod
from webhook.documents.documents import field
from webhook.mutation import rules
from webhook.mutation.rules import RULES


def test_the_table_holds_every_rule_of_the_module_by_its_name() -> None:
    functions = {
        name: function
        for name, function in getmembers(rules, isfunction)
        if function.__module__ == rules.__name__ and not name.startswith("_")
    }

    assert {to_snake(name): rule for name, rule in RULES.items()} == functions


def test_rules_apply_in_the_order_of_the_contract() -> None:
    assert [*RULES] == [
        "NodeUsageAffinity",
        "GpuProduct",
        "ExtraTolerations",
        "BinPacking",
        "SchedulerName",
        "BatchScheduler",
        "Priority",
        "Spread",
        "Guaranteed",
    ]


def test_products_of_others_are_excluded_by_each_label_that_can_name_them() -> None:
    policy = policy_with(allowedProducts={"MI300X": ["team-b"]})

    verdict = admit_pod(make_pod().gpu(1, "amd.com/gpu").annotate(TYPE, "training").obj(), policy)

    assert verdict.outcome == "Patched"
    required = field(verdict.pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    excluding = {
        each["key"] for each in required["nodeSelectorTerms"][0]["matchExpressions"] if each["operator"] == "NotIn"
    }
    assert excluding == {"amd.com/gpu.product-name", "amd.com/gpu.product"}


POLICY = {
    "workloadTypes": {
        "plain": {"nodeUsage": {"allow": ["training"]}},
        "full": {
            "nodeUsage": {"allow": ["training", "hybrid"], "prefer": {"hybrid": 5, "training": 9}},
            "extraTolerations": [{"key": "type", "effect": "NoExecute", "value": "x", "tolerationSeconds": 60}],
            "schedulerName": "volcano",
            "priorityClassName": "high",
            "spread": {"topology": "zone", "mode": "preferred", "form": "topologySpread", "maxSkew": 3},
            "binPacking": True,
            "qos": {"class": "Guaranteed"},
        },
        "hard": {
            "nodeUsage": {"allow": ["training"]},
            "spread": {"topology": "rack", "mode": "required", "form": "topologySpread"},
        },
        "apart": {
            "nodeUsage": {"allow": ["training"]},
            "spread": {"topology": "host", "mode": "required", "form": "antiAffinity"},
        },
        "soft": {
            "nodeUsage": {"allow": ["training"]},
            "spread": {"topology": "host", "mode": "preferred", "form": "antiAffinity", "weight": 7},
            "binPacking": True,
        },
    },
    "schedulers": {"none": {"backend": "default", "binPackingHint": False}},
    "allowedSchedulers": ["default-scheduler", "volcano", "none"],
    "accelerators": [
        {
            "name": "a",
            "resources": ["a.com/gpu"],
            "card": "a.com/gpu",
            "labels": {"product": ["a.com/p", "a.com/q"], "memory": ["a.com/m"], "memoryUnit": "GiB"},
            "extraTolerations": [{"key": "card", "operator": "Exists"}],
        },
        {"name": "b", "resources": ["b.com/gpu"], "card": "b.com/gpu"},
    ],
}
A, B = {"a.com/gpu": 1}, {"b.com/gpu": 1}
PACKING = ("label jobtype=binpacked", "prefer kubernetes.io/hostname with pods jobtype=binpacked (weight 100)")
JOB = "batch.kubernetes.io/job-name=j"
USAGE = f"{DOMAIN}/node.usage"


def outcomes(of_type: str, annotations: dict[str, str], limits: dict[str, int], **policy: Any) -> dict[str, Any]:
    """Return the edits of each rule for a pod of a Job, or why there are none."""
    pod = make_pod().annotate(TYPE, of_type).limits(**limits).label("batch.kubernetes.io/job-name", "j")
    for key, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{key}", value)
    verdict = admit_pod(pod.obj(), policy_with(**(POLICY | policy)))
    assert verdict.outcome == "Patched"
    return {each.name: each.skipped or each.edits for each in verdict.rules}


NO_PRODUCT = "tolerate a.com/gpu.product=*:NoSchedule"
TABLE: list[tuple[str, str, dict[str, str], dict[str, int], Any]] = [
    (
        "NodeUsageAffinity", "plain", {}, {},
        (f"require node {USAGE} in [training]", f"tolerate {USAGE}=training:NoSchedule"),
    ),
    (
        "NodeUsageAffinity", "full", {}, {},
        (f"require node {USAGE} in [training, hybrid]", f"prefer node {USAGE} in [training] (weight 9)",
         f"prefer node {USAGE} in [hybrid] (weight 5)", f"tolerate {USAGE}=training:NoSchedule",
         f"tolerate {USAGE}=hybrid:NoSchedule"),
    ),
    ("GpuProduct", "plain", {}, {}, "the pod has no valid gpu- annotation and requests no accelerator"),
    ("GpuProduct", "plain", {}, A, (NO_PRODUCT,)),
    ("GpuProduct", "plain", {}, A | B, (NO_PRODUCT, "tolerate b.com/gpu.product=*:NoSchedule")),
    (
        "GpuProduct", "plain", {"gpu-product": "X,Y"}, A,
        ("require node a.com/p in [X, Y] or a.com/q in [X, Y]", "tolerate a.com/gpu.product=X:NoSchedule",
         "tolerate a.com/gpu.product=Y:NoSchedule"),
    ),
    (
        "GpuProduct", "plain", {"gpu-memory": "80Gi", "gpu-count": "8", "gpu-driver": "550"}, A,
        ("require node a.com/m > 75 (80Gi less 5 %)", "require node a.com/gpu.count > 7",
         "require node a.com/gpu.driver-version > 549", NO_PRODUCT),
    ),
    ("ExtraTolerations", "plain", {}, {}, "the policy lists no extra tolerations for this pod"),
    ("ExtraTolerations", "plain", {}, B, "the policy lists no extra tolerations for this pod"),
    ("ExtraTolerations", "plain", {}, A, ("tolerate card=*:*",)),
    ("ExtraTolerations", "full", {}, A, ("tolerate card=*:*", "tolerate type=x:NoExecute for 60 s")),
    ("ExtraTolerations", "full", {}, {}, ("tolerate type=x:NoExecute for 60 s",)),
    ("BinPacking", "plain", {}, {}, "bin-packing is off for this pod"),
    ("BinPacking", "full", {}, {}, PACKING),
    ("BinPacking", "full", {"bin-packing": "false"}, {}, "bin-packing is off for this pod"),
    ("BinPacking", "plain", {"bin-packing": "true"}, {}, PACKING),
    (
        "BinPacking", "plain", {"bin-packing": "true", "scheduler": "none"}, {},
        "the policy leaves packing to the scheduler (schedulers.NAME.binPackingHint)",
    ),
    (
        "BinPacking", "soft", {}, {},
        "the pod prefers to be spread over kubernetes.io/hostname, which packing would undo",
    ),
    ("BinPacking", "apart", {"bin-packing": "true"}, {}, PACKING),
    ("BinPacking", "soft", {"bin-packing": "true"}, {}, PACKING),
    ("SchedulerName", "plain", {}, {}, "the type names no scheduler"),
    ("SchedulerName", "full", {}, {}, ("scheduler volcano",)),
    ("SchedulerName", "full", {"scheduler": "none"}, {}, ("scheduler none",)),
    ("SchedulerName", "plain", {"scheduler": "default-scheduler"}, {}, "the pod is already so"),
    ("BatchScheduler", "plain", {}, {}, "no queue, gang or share of a card is requested"),
    ("BatchScheduler", "plain", {"queue": "q"}, {}, "scheduler default-scheduler cannot express what is requested"),
    ("BatchScheduler", "full", {"queue": "q"}, {}, ("annotation scheduling.volcano.sh/queue-name=q",)),
    ("BatchScheduler", "plain", {"within": "rack"}, {},
     (f"prefer topology.kubernetes.io/rack with pods {JOB} (weight 100)",)),
    ("Priority", "plain", {}, {}, "the type names no priority class"),
    ("Priority", "full", {}, {}, ("priority class high",)),
    ("Spread", "plain", {}, {}, "the type does not spread its pods"),
    ("Spread", "full", {"spread": "none"}, {}, "the annotation spread is none"),
    ("Spread", "full", {}, {},
     (f"spread pods {JOB} over topology.kubernetes.io/zone (ScheduleAnyway, maxSkew 3)",)),
    ("Spread", "hard", {}, {}, (f"spread pods {JOB} over topology.kubernetes.io/rack (DoNotSchedule, maxSkew 1)",)),
    ("Spread", "hard", {"spread": "host"}, {},
     (f"spread pods {JOB} over kubernetes.io/hostname (DoNotSchedule, maxSkew 1)",)),
    ("Spread", "apart", {}, {}, (f"require kubernetes.io/hostname without pods {JOB}",)),
    ("Spread", "soft", {}, {}, (f"prefer kubernetes.io/hostname without pods {JOB} (weight 7)",)),
    ("Spread", "soft", {"bin-packing": "true"}, {},
     "the annotation bin-packing packs the pod over kubernetes.io/hostname"),
    ("Spread", "soft", {"bin-packing": "true", "spread": "host"}, {},
     (f"prefer kubernetes.io/hostname without pods {JOB} (weight 7)",)),
    ("Guaranteed", "plain", {}, {}, "the type asks for no QoS class"),
    ("Guaranteed", "full", {}, {}, "no limit or request to derive from"),
    (
        "Guaranteed", "full", {}, {"cpu": 1, "memory": 2},
        ("set spec.containers[0].resources.requests.cpu=1", "set spec.containers[0].resources.requests.memory=2"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "of_type", "annotations", "limits", "wanted"), TABLE)
def test_each_rule_has_its_edits_or_the_reason_why_there_are_none(
    rule: str, of_type: str, annotations: dict[str, str], limits: dict[str, int], wanted: Any
) -> None:
    assert outcomes(of_type, annotations, limits)[rule] == wanted


def test_every_rule_is_skipped_and_applied_in_the_table() -> None:
    """The first rule applies to every pod with a type."""
    both = {(rule, is_skipped) for rule in RULES for is_skipped in (True, False)}
    assert both - {(row[0], isinstance(row[4], str)) for row in TABLE} == {("NodeUsageAffinity", True)}


def test_products_that_a_namespace_may_use_are_required_where_they_are_all_that_it_may() -> None:
    limits = [{"namespaces": ["*"], "products": ["X"]}]
    assert outcomes("plain", {}, A, namespaceLimits=limits)["GpuProduct"] == (
        "require node a.com/p in [X] or a.com/q in [X]",
        "tolerate a.com/gpu.product=X:NoSchedule",
    )
    allowed = {"Y": ["team-b"]}
    assert outcomes("plain", {}, B, allowedProducts=allowed)["GpuProduct"] == (
        "require node b.com/gpu.product exists",
        "require node b.com/gpu.product not in [Y]",
        "tolerate b.com/gpu.product=*:NoSchedule",
    )
    assert outcomes("plain", {"gpu-product": "X"}, A, productAffinity=False)["GpuProduct"] == (
        "tolerate a.com/gpu.product=X:NoSchedule",
    )

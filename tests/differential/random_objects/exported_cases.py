"""Random policies, namespaces and pods for the comparison of exported policies with the webhook."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import orjson

from tests.differential.random_objects.dice import Dice
from tests.support.admission import DOMAIN, USAGE
from webhook.documents.field import InvalidInput
from webhook.policy.loader import parse_policy
from webhook.policy.policy import Policy
from webhook.policy.spec.document import API_VERSION, KIND

T = TypeVar("T")
JsonObject = dict[str, Any]
PRODUCTS = ("NVIDIA-H20", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H20-SHARED", "A.b_c", "7")
PATTERNS = ("NVIDIA-H20", "NVIDIA-A100*", "*", "*-SHARED", "7")
POOLS = ("training", "inference", "hybrid", "spot")
TYPES = ("training", "inference", "batch")
NAMESPACES: Sequence[JsonObject] = (
    {"name": "team-a"},
    {
        "name": "team-b",
        "annotations": {
            f"{DOMAIN}/workload-type": "training",
            f"{DOMAIN}/gpu-product": "NVIDIA-H20, NVIDIA-A100-SXM4-80GB",
        },
    },
    {
        "name": "lab-1",
        "annotations": {
            f"{DOMAIN}/workload-type": " inference ",
            f"{DOMAIN}/scheduler": "kai-scheduler",
            f"{DOMAIN}/spread": "zone",
        },
    },
    {"name": "team-c", "annotations": {f"{DOMAIN}/workload-type": "training", f"{DOMAIN}/queue": "research"}},
    {"name": "lab-2", "annotations": {f"{DOMAIN}/workload-type": "no-such-type"}},
    {"name": "lab-3", "annotations": {f"{DOMAIN}/inject": "disabled", f"{DOMAIN}/workload-type": "training"}},
)
NAMESPACE_PATTERNS = ("team-a", "team-*", "lab-*", "lab-1", "*-b", "*")
PRIORITY_CLASSES = {"normal": 5, "high": 100, "mine": 7}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SCHEDULERS = ("default-scheduler", "volcano", "kai-scheduler", "binpack-scheduler")
TOPOLOGIES = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/rack")
LEFT_TO_WEBHOOK = {
    "gpu-memory": "80Gi",
    "gpu-count": "1",
    "gpu-driver": "535",
    "queue": "research",
    "gang": "g",
    "gang-size": "4",
    "within": "rack",
    "gpu-fraction": "0.5",
    "preemptible": "true",
}
CARDS = (
    *("nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.10gb"),
    *("volcano.sh/vgpu-number", "huawei.com/Ascend910", "nvidia.com/gpumem"),
)


class Choices(Dice):
    """Choices of values and of objects with some of their fields."""

    def one(self, values: Sequence[T]) -> T:
        """Return one of `values`."""
        return self.choice(values)

    def fields(self, percent: int, **makers: Callable[[], Any]) -> JsonObject:
        """Return an object with each field in so many of a hundred cases."""
        return {name: make() for name, make in makers.items() if self.chance(percent)}


def random_policies(seed: int) -> Iterator[Policy]:
    """Yield valid policies without end."""
    while True:
        dice = Choices(seed)
        seed += 1
        document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "random"}, "spec": _spec(dice)}
        try:
            yield parse_policy(orjson.dumps(document), "random")
        except InvalidInput:
            continue


def _spec(dice: Choices) -> JsonObject:
    types = dice.some(TYPES, 1, 3)
    return {
        "workloadTypes": {name: _type(dice) for name in types},
        **dice.fields(
            25,
            productAffinity=lambda: False,
            tolerateAnyProduct=lambda: False,
            productVariants=lambda: dice.some(("-SHARED", "-MIG-1g.10gb"), 1, 2),
            withoutAccelerator=lambda: dice.one(("inject", "warn", "leave")),
            requireType=lambda: dice.one(("warn", "deny", *types)),
            allowedProducts=lambda: {each: dice.some(NAMESPACE_PATTERNS, 0, 2) for each in dice.some(PATTERNS, 1, 3)},
            namespaceLimits=lambda: [_limits(dice, types) for _ in range(dice.randint(1, 2))],
            binPacking=lambda: _packing(dice),
            accelerators=lambda: _accelerators(dice),
            schedulers=lambda: {dice.one(SCHEDULERS): _scheduler(dice) for _ in range(dice.randint(1, 2))},
            defaultPriorityClass=lambda: "normal",
            optOutNamespaces=lambda: dice.some(NAMESPACE_PATTERNS, 0, 2),
            topologyAliases=lambda: {"host": TOPOLOGIES[0], "dc": "example.com/dc"},
        ),
        **dice.fields(15, invalidAnnotations=lambda: "warn", exemptions=lambda: [_exemption(dice)]),
        **dice.fields(3, mode=lambda: "shadow"),
    }


def _type(dice: Choices) -> JsonObject:
    allow = dice.some(POOLS, 1, 3)
    prefer = {pool: dice.randint(1, 100) for pool in dice.some(allow, 0, 2)}
    return {
        "nodeUsage": {"allow": allow, "prefer": prefer},
        **dice.fields(
            35,
            schedulerName=lambda: dice.one(SCHEDULERS),
            priorityClassName=lambda: dice.one(tuple(PRIORITY_CLASSES)),
            binPacking=lambda: True,
            spread=lambda: dice.fields(
                60,
                topology=lambda: dice.one(("host", "zone", *TOPOLOGIES)),
                mode=lambda: dice.one(("preferred", "required")),
                form=lambda: dice.one(("antiAffinity", "topologySpread")),
            ),
            within=lambda: {"topology": "rack", "mode": dice.one(("preferred", "required"))},
            extraTolerations=lambda: _extra(dice),
        ),
        **dice.fields(8, allowedNamespaces=lambda: dice.some(NAMESPACE_PATTERNS, 0, 2), qos=lambda: _qos(dice)),
    }


def _qos(dice: Choices) -> JsonObject:
    booleans = dice.fields(40, limitsFromRequests=lambda: True, wholeCpus=lambda: True, onMissing=lambda: "deny")
    return {"class": "Guaranteed", **booleans}


def _extra(dice: Choices) -> list[JsonObject]:
    def toleration() -> JsonObject:
        effect = dice.one(("NoSchedule", "NoExecute", "PreferNoSchedule", ""))
        operator = dice.one(("Equal", "Exists"))
        return {
            "key": dice.one(("nvidia.com/gpu", "nvidia.com/gpu.product", USAGE, "spot")),
            "operator": operator,
            **({"value": dice.one(("", "present", "NVIDIA-H20", "training"))} if operator == "Equal" else {}),
            **({"effect": effect} if effect else {}),
            **({"tolerationSeconds": dice.randint(0, 60)} if effect == "NoExecute" and dice.chance(50) else {}),
        }

    return [toleration() for _ in range(dice.randint(1, 3))]


def _limits(dice: Choices, types: Sequence[str]) -> JsonObject:
    return {
        "namespaces": dice.some(NAMESPACE_PATTERNS, 1, 2),
        **dice.fields(
            40,
            workloadTypes=lambda: dice.some(types, 0, 2),
            products=lambda: dice.some(PATTERNS, 0, 2),
            schedulers=lambda: dice.some(SCHEDULERS, 0, 3),
            queues=lambda: dice.some(("research", "team-*", "q"), 0, 2),
            maxCardsPerPod=lambda: dice.randint(0, 4),
        ),
    }


def _packing(dice: Choices) -> JsonObject:
    return dice.fields(
        50,
        labelKey=lambda: dice.one(("jobtype", "example.com/packed")),
        labelValue=lambda: "yes",
        weight=lambda: dice.randint(1, 100),
        topologyKey=lambda: dice.one(TOPOLOGIES),
        namespaces=lambda: "same",
    )


def _accelerators(dice: Choices) -> list[JsonObject]:
    def accelerator(name: str, resources: list[str], card: str) -> JsonObject:
        more = dice.fields(50, extraTolerations=lambda: _extra(dice), labels=lambda: {"product": _labels_of(dice)})
        return {"name": name, "resources": resources, "card": card, **more}

    return [
        accelerator("nvidia", ["nvidia.com/gpu", "nvidia.com/mig-*"], "nvidia.com/gpu"),
        accelerator("amd", ["amd.com/gpu*"], dice.one(("amd.com/gpu", "nvidia.com/gpu"))),
    ]


def _labels_of(dice: Choices) -> list[str]:
    return dice.some(("nvidia.com/gpu.product", "amd.com/gpu.product-name", "example.com/card"), 1, 2)


def _scheduler(dice: Choices) -> JsonObject:
    backends = ("default", "volcano", "kai", "coscheduling")
    return dice.fields(60, backend=lambda: dice.one(backends), binPackingHint=lambda: False)


def _exemption(dice: Choices) -> JsonObject:
    kinds: Sequence[JsonObject] = (
        {"users": ["a*n", "system:node:*"]},
        {"groups": ["ops", "system:m*"]},
        {"serviceAccounts": ["ci:*"]},
        {"namespaces": dice.some(NAMESPACE_PATTERNS[:4], 1, 2)},
        {"podLabels": {"matchLabels": {"app": "x"}}},
        {"namespaces": ["team-*"], "podLabels": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
        {"podLabels": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["y"]}]}, "users": ["a*"]},
    )
    return {**dice.one(kinds), "reason": "a test"}


def random_pod(dice: Choices) -> JsonObject:
    """Return a pod that the API server accepts, with annotations; some of them are not valid."""
    metadata = {"name": "worker-0", "annotations": _annotations(dice), **dice.fields(50, labels=lambda: _labels(dice))}
    if dice.chance(50):
        metadata["ownerReferences"] = [
            {
                "apiVersion": "apps/v1",
                "kind": dice.one(("ReplicaSet", "StatefulSet", "Job")),
                "name": dice.one(("x", "web-7")),
                "uid": "1",
                **dice.fields(80, controller=lambda: True),
            }
        ]
    spec = {
        "containers": [_container(dice, f"c{index}") for index in range(dice.randint(1, 2))],
        **dice.fields(25, initContainers=lambda: [_container(dice, "init", sidecar=dice.chance(50))]),
        **dice.fields(
            35,
            affinity=lambda: _affinity(dice),
            tolerations=lambda: [_toleration(dice) for _ in range(dice.randint(1, 4))],
            schedulerName=lambda: dice.one(SCHEDULERS),
        ),
        **dice.fields(20, topologySpreadConstraints=lambda: [_constraint(dice)]),
        **dice.fields(15, priorityClassName=lambda: dice.one(tuple(PRIORITY_CLASSES))),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _annotations(dice: Choices) -> dict[str, str]:
    values: dict[str, Sequence[str]] = {
        "gpu-product": ("NVIDIA-H20", "NVIDIA-H20, 7,NVIDIA-H20", ",".join(PRODUCTS), "NVIDIA-A100-SXM4-80GB", "a b"),
        "bin-packing": ("true", "false", "True"),
        "spread": ("host", "zone", "none", "example.com/rack", "no-such", ""),
        "scheduler": (*SCHEDULERS, "other"),
        "placement-check": ("off", "warn", "maybe"),
        "inject": ("enabled", "enabled", "disabled", "off"),
    }
    found = (
        {f"{DOMAIN}/workload-type": dice.one((*TYPES, "training", "inference", " training\t"))}
        if dice.chance(80)
        else {}
    )
    for name, choices in values.items():
        if dice.chance(18):
            # Most values are valid: one that is not denies the pod, and hides the others.
            found[f"{DOMAIN}/{name}"] = dice.one(choices if dice.chance(12) else choices[:2])
    for name, value in LEFT_TO_WEBHOOK.items():
        if dice.chance(2):
            found[f"{DOMAIN}/{name}"] = value
    # A template can have the record of an earlier revision.
    recorded = {f"{DOMAIN}/placement-policy": "default@old", f"{DOMAIN}/placement-rules": "GpuProduct,BinPacking"}
    found |= recorded if dice.chance(5) else {}
    return {**found, **dice.fields(3, **{"gpu-fraction": lambda: "0.5", "example.com/a": lambda: "b"})}


def _labels(dice: Choices) -> dict[str, str]:
    keys = ("jobtype", "app", "job-name", "pod-template-hash", f"{DOMAIN}/spread-group", "volcano.sh/job-name")
    more = ("kai.scheduler/queue", "kueue.x-k8s.io/queue-name", "example.com/packed")
    return {key: dice.one(("binpacked", "x", "yes", "q")) for key in dice.some((*keys, *more), 1, 3)}


def _container(dice: Choices, name: str, *, sidecar: bool = False) -> JsonObject:
    limits: dict[str, str] = {each: str(dice.randint(0, 3)) for each in dice.some(CARDS, 0, 1) if dice.chance(70)}
    limits |= dice.fields(40, cpu=lambda: dice.one(("1", "1500m", "2")), memory=lambda: dice.one(("1Gi", "512Mi")))
    requests = dice.fields(40, cpu=lambda: dice.one(("1", "500m")), memory=lambda: "512Mi")
    always = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, "image": "nginx", "resources": {"limits": limits, "requests": requests}, **always}


def _toleration(dice: Choices) -> JsonObject:
    operator = dice.one(("Equal", "Exists", ""))
    effect = dice.one(("NoSchedule", "NoExecute", ""))
    key = dice.one((USAGE, "nvidia.com/gpu.product", "spot", "nvidia.com/gpu", ""))
    operator = operator if key else "Exists"
    return {
        **({"key": key} if key else {}),
        **({"operator": operator} if operator else {}),
        **({"value": dice.one((*POOLS, "NVIDIA-H20", "present"))} if operator != "Exists" else {}),
        **({"effect": effect} if effect else {}),
        **({"tolerationSeconds": dice.randint(0, 60)} if effect == "NoExecute" and dice.chance(50) else {}),
    }


def _affinity(dice: Choices) -> JsonObject:
    def weighted() -> list[JsonObject]:
        return [{"weight": dice.one((1, 10, 100)), "podAffinityTerm": _pod_term(dice)}]

    return dice.fields(
        60,
        nodeAffinity=lambda: dice.fields(
            70,
            **{
                REQUIRED: lambda: {"nodeSelectorTerms": [_term(dice) for _ in range(dice.randint(1, 3))]},
                PREFERRED: lambda: [
                    {"weight": dice.one((1, 10, 100)), "preference": _preference(dice)}
                    for _ in range(dice.randint(1, 2))
                ],
            },
        ),
        podAffinity=lambda: dice.fields(60, **{REQUIRED: lambda: [_pod_term(dice)], PREFERRED: weighted}),
        podAntiAffinity=lambda: dice.fields(60, **{REQUIRED: lambda: [_pod_term(dice)], PREFERRED: weighted}),
    )


def _preference(dice: Choices) -> JsonObject:
    if dice.chance(50):
        return {"matchExpressions": [{"key": USAGE, "operator": "In", "values": [dice.one(POOLS)]}]}
    return {"matchExpressions": [_expression(dice)]}


def _term(dice: Choices) -> JsonObject:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]
    return dice.fields(
        70,
        matchExpressions=lambda: [_expression(dice) for _ in range(dice.randint(1, 3))],
        matchFields=lambda: fields,
    )


def _expression(dice: Choices) -> JsonObject:
    card = "nvidia.com/gpu"
    key = dice.one((USAGE, f"{card}.product", f"{card}.count", f"{card}.memory", "zone"))
    operator = dice.one(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    if operator in ("Gt", "Lt"):
        return {
            "key": key,
            "operator": operator,
            "values": [dice.one(("0", "7", "80000", "-3", "9223372036854775807"))],
        }
    return {"key": key, "operator": operator, "values": dice.some((*POOLS, *PRODUCTS, "8", "80000"), 1, 3)}


def _pod_term(dice: Choices) -> JsonObject:
    selectors: Sequence[JsonObject] = (
        {"matchLabels": {"jobtype": "binpacked"}},
        {"matchExpressions": [{"key": "jobtype", "operator": "In", "values": ["binpacked"]}]},
        {"matchLabels": {"app": "x"}},
        {"matchExpressions": [{"key": "app", "operator": dice.one(("Exists", "DoesNotExist"))}]},
        {"matchExpressions": [{"key": "app", "operator": dice.one(("In", "NotIn")), "values": ["x", "y"]}]},
        {},
    )
    more = dice.fields(30, namespaceSelector=dict, namespaces=lambda: ["team-a"])
    return {"labelSelector": dice.one(selectors), "topologyKey": dice.one(TOPOLOGIES), **more}


def _constraint(dice: Choices) -> JsonObject:
    return {
        "maxSkew": dice.randint(1, 2),
        "topologyKey": dice.one(TOPOLOGIES),
        "whenUnsatisfiable": dice.one(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": "x"}},
    }

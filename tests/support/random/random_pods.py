"""Random pods with everything that the rules meet: affinity of all kinds, tolerations, labels, null parents."""

from typing import Any

from hypothesis import strategies as st

from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE
from webhook.kube.names import LIMIT_RANGER

USAGES = ["training", "inference", "hybrid", "other"]
PRODUCTS = ["NVIDIA-H20", "NVIDIA-A10"]
EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule"]
CARD = "nvidia.com/gpu.product"
TOPOLOGIES = ["kubernetes.io/hostname", "topology.kubernetes.io/zone", "zone"]

Strategy = st.SearchStrategy[Any]


def optional(**fields: Strategy) -> Strategy:
    """Draw an object with any of `fields`, each with a value or null."""
    return st.fixed_dictionaries({}, optional={key: st.none() | value for key, value in fields.items()})


def expressions() -> Strategy:
    values = st.lists(st.sampled_from([*USAGES, *PRODUCTS, "8", "80000"]), min_size=1, max_size=3)
    with_values = st.fixed_dictionaries(
        {
            "key": st.sampled_from([USAGE, CARD, "nvidia.com/gpu.count", "zone"]),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": values,
        }
    )
    bounds = st.fixed_dictionaries(
        {
            "key": st.sampled_from(["nvidia.com/gpu.count", "nvidia.com/gpu.memory"]),
            "operator": st.sampled_from(["Gt", "Lt"]),
            "values": st.sampled_from(["0", "7", "80000"]).map(lambda value: [value]),
        }
    )
    bare = st.fixed_dictionaries(
        {"key": st.sampled_from([USAGE, CARD]), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
    )
    return with_values | bounds | bare


def terms() -> Strategy:
    fields = st.just([{"key": "metadata.name", "operator": "In", "values": ["node-1"]}])
    return optional(matchExpressions=st.lists(expressions(), max_size=3), matchFields=fields)


def pod_terms() -> Strategy:
    return st.fixed_dictionaries(
        {"labelSelector": st.just({"matchLabels": {"jobtype": "binpacked"}}), "topologyKey": st.just("zone")}
    )


def spread_terms() -> Strategy:
    """Terms of pod affinity or anti-affinity over the topologies that pods are spread over."""
    selectors = [{"matchLabels": {"app": "x"}}, {"matchLabels": {"job-name": "x"}}, {}]
    return st.fixed_dictionaries(
        {"topologyKey": st.sampled_from(TOPOLOGIES)}, optional={"labelSelector": st.sampled_from(selectors)}
    )


def constraints() -> Strategy:
    """Topology spread constraints; the API server accepts one for each key and `whenUnsatisfiable`."""
    constraint = st.fixed_dictionaries(
        {
            "maxSkew": st.integers(1, 3),
            "topologyKey": st.sampled_from(TOPOLOGIES),
            "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": st.just({"matchLabels": {"app": "x"}}),
        }
    )
    return st.lists(constraint, max_size=2, unique_by=lambda each: (each["topologyKey"], each["whenUnsatisfiable"]))


def owners() -> Strategy:
    """Lists of one owner."""
    owner = st.fixed_dictionaries(
        {"kind": st.sampled_from(["ReplicaSet", "Job"]), "name": st.just("x"), "uid": st.sampled_from(["1", "2"])},
        optional={"controller": st.booleans()},
    )
    return st.lists(owner, max_size=1)


def affinities() -> Strategy:
    required = optional(nodeSelectorTerms=st.lists(terms(), max_size=3))
    preferred = st.lists(st.fixed_dictionaries({"weight": st.integers(1, 100), "preference": terms()}), max_size=2)
    weighted = st.lists(st.fixed_dictionaries({"weight": st.just(3), "podAffinityTerm": pod_terms()}), max_size=2)
    return optional(
        nodeAffinity=optional(
            requiredDuringSchedulingIgnoredDuringExecution=required,
            preferredDuringSchedulingIgnoredDuringExecution=preferred,
        ),
        podAffinity=optional(
            requiredDuringSchedulingIgnoredDuringExecution=st.lists(pod_terms() | spread_terms(), max_size=1),
            preferredDuringSchedulingIgnoredDuringExecution=weighted,
        ),
        podAntiAffinity=optional(
            requiredDuringSchedulingIgnoredDuringExecution=st.lists(spread_terms(), max_size=1),
            preferredDuringSchedulingIgnoredDuringExecution=st.lists(
                st.fixed_dictionaries({"weight": st.just(5), "podAffinityTerm": spread_terms()}), max_size=1
            ),
        ),
    )


def tolerations() -> Strategy:
    return st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "key": st.sampled_from(["", USAGE, CARD]),
                "operator": st.sampled_from(["", "Exists", "Equal"]),
                "value": st.sampled_from(["", *USAGES, *PRODUCTS]),
                "effect": st.sampled_from(["", *EFFECTS]),
            },
        ),
        max_size=4,
    )


def annotations() -> Strategy:
    return st.fixed_dictionaries(
        {TYPE: st.sampled_from(["training", "inference"])},
        optional={
            PRODUCT: st.sampled_from([*PRODUCTS, ",".join(PRODUCTS)]),
            f"{DOMAIN}/gpu-memory": st.sampled_from(["80Gi", "2G"]),
            f"{DOMAIN}/gpu-count": st.sampled_from(["1", "8"]),
            f"{DOMAIN}/bin-packing": st.sampled_from(["true", "false"]),
            f"{DOMAIN}/scheduler": st.sampled_from(["default-scheduler", "volcano"]),
            f"{DOMAIN}/spread": st.sampled_from(["host", "zone", "none"]),
            f"{DOMAIN}/gang": st.sampled_from(["bert", "x"]),
            f"{DOMAIN}/within": st.sampled_from(["rack", "nvlink", "none"]),
            f"{DOMAIN}/within-mode": st.sampled_from(["required", "preferred"]),
            "example.com/a~b": st.text(max_size=5),
            LIMIT_RANGER: st.sampled_from(["LimitRanger plugin set: cpu, memory request for container main", "x"]),
        },
    )


def amounts() -> Strategy:
    """Return amounts of cpu and memory in several forms."""
    return st.fixed_dictionaries(
        {},
        optional={"cpu": st.sampled_from(["0", "2", 2, "2000m", "500m"]), "memory": st.sampled_from(["1Gi", "1024Mi"])},
    )


def pods() -> Strategy:
    """Return pods with a valid workload type."""
    keys = [
        "jobtype",
        "app",
        "a/b~c",
        "job-name",
        "pod-template-hash",
        f"{DOMAIN}/spread-group",
        f"{DOMAIN}/gang-group",
    ]
    labels = st.dictionaries(st.sampled_from(keys), st.sampled_from(["binpacked", "x"]))
    metadata = st.fixed_dictionaries(
        {"name": st.just("worker"), "annotations": annotations()},
        optional={"labels": st.none() | labels, "ownerReferences": st.none() | owners()},
    )
    spec = optional(
        affinity=affinities(),
        tolerations=tolerations(),
        topologySpreadConstraints=constraints(),
        priorityClassName=st.sampled_from(["", "normal", "high", "mine"]),
        priority=st.sampled_from([0, 7]),
        preemptionPolicy=st.sampled_from(["PreemptLowerPriority", "Never"]),
        schedulerName=st.sampled_from(["", "default-scheduler", "volcano", "kai-scheduler"]),
        nodeSelector=st.dictionaries(st.sampled_from([USAGE, "zone"]), st.sampled_from(USAGES), max_size=2),
    )
    return st.builds(
        lambda metadata, spec, resources: {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [{"name": "main", "image": "nginx", "resources": resources}], **spec},
        },
        metadata,
        spec,
        st.sampled_from([{}, {"limits": {"nvidia.com/gpu": "1"}}, {"limits": {"huawei.com/npu": "8"}}])
        | optional(requests=amounts(), limits=amounts()),
    )

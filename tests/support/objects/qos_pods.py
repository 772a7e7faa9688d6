"""Pods by the QoS class that kubelet and API server give them."""

from collections.abc import Mapping

from tests.support.objects.builders import PodBuilder, make_pod

BOTH = {"cpu": "1", "memory": "1Gi"}
EQUAL = make_pod().requests(**BOTH).limits(**BOTH)
LIMITS = make_pod().limits(**BOTH)

PODS: Mapping[str, Mapping[str, PodBuilder]] = {
    "BestEffort": {
        "nothing": make_pod(),
        "a card alone": make_pod().gpu(1),
        "amounts of zero": make_pod().requests(cpu="0").limits(memory="0"),
    },
    "Burstable": {
        "requests alone": make_pod().requests(**BOTH),
        "a smaller request": LIMITS.requests(cpu="500m"),
        "no limit of memory": make_pod().limits(cpu="1"),
        "a container without limits": EQUAL.container("other"),
        "an init container without limits": EQUAL.init_container("setup"),
        "a sidecar with requests": EQUAL.sidecar("logs", **BOTH),
        "requests of the pod above a limit of a container": make_pod().limits(cpu="1").pod_resources(**BOTH),
        "one limit of the pod": make_pod().spec(resources={"limits": {"cpu": "1"}}),
        "a smaller request of a container, and limits of the pod": make_pod()
        .requests(cpu="500m")
        .spec(resources={"limits": BOTH}),
    },
    "Guaranteed": {
        "equal amounts": EQUAL,
        "limits alone": LIMITS,
        "equal amounts in other forms": LIMITS.requests(cpu="1000m", memory="1024Mi"),
        "with a card": EQUAL.gpu(1),
        "empty resources of the pod": LIMITS.spec(resources={}),
        "requests of the pod, and limits of its containers": EQUAL.pod_resources(**BOTH),
        "requests of the pod above the limits of its containers": make_pod()
        .limits(cpu="500m", memory="512Mi")
        .pod_resources(**BOTH),
        "limits of the pod": make_pod().spec(resources={"limits": BOTH}),
        "equal amounts of the pod": make_pod().container("other").spec(resources={"requests": BOTH, "limits": BOTH}),
    },
}

"""Requests of a pod to a batch scheduler."""

from typing import Any

# What each backend writes for one attribute alone. None: a warning names it; empty: only the placement check reads it.
QUEUE, GANG, SIZE = {"queue": "q"}, {"gang": "g"}, {"gang_size": 4}
SHARE, LOW, KEPT = {"gpu_fraction": "0.5"}, {"preemptible": True}, {"preemptible": False}
WRITTEN: dict[str, list[tuple[dict[str, Any], str | None]]] = {
    "default": [(QUEUE, None), (GANG, None), (SIZE, ""), (SHARE, None), (LOW, None), (KEPT, None)],
    "volcano": [
        (QUEUE, "annotation scheduling.volcano.sh/queue-name=q"),
        (GANG, "annotation scheduling.k8s.io/group-name=g"),
        (SIZE, None),
        (SHARE, None),
        (LOW, "annotation volcano.sh/preemptable=true"),
        (KEPT, "annotation volcano.sh/preemptable=false"),
    ],
    "kai": [
        (QUEUE, "label kai.scheduler/queue=q"),
        (GANG, "annotation pod-group-name=g"),
        (SIZE, None),
        (SHARE, "annotation gpu-fraction=0.5"),
        (LOW, "label kai.scheduler/preemptibility=preemptible"),
        (KEPT, "label kai.scheduler/preemptibility=non-preemptible"),
    ],
    "coscheduling": [
        (QUEUE, None),
        (GANG, "label scheduling.x-k8s.io/pod-group=g"),
        (SIZE, None),
        (SHARE, None),
        (LOW, None),
        (KEPT, None),
    ],
    "native": [
        (QUEUE, None),
        (GANG, "spec.schedulingGroup.podGroupName g"),
        (SIZE, None),
        (SHARE, None),
        (LOW, None),
        (KEPT, None),
    ],
    # The scheduler of the pod gets the last two, Kueue the others.
    "kueue": [(QUEUE, "label kueue.x-k8s.io/queue-name=q"), (GANG, None), (SIZE, None)],
}

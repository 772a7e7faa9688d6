"""Every field of a pod of a template that is read, with values that change what is decided on some pods."""

from typing import Any

from tests.support.admission import TYPE
from webhook.kube.names import LIMIT_RANGER

Object = dict[str, Any]

_TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["app"]}
FIELDS: dict[tuple[str, str], tuple[Any, ...]] = {
    ("metadata", "namespace"): ("team-a",),
    ("metadata", "labels"): ({"app": "x"}, {"kueue.x-k8s.io/queue-name": "q"}),
    ("metadata", "annotations"): (
        {},
        {TYPE: "training", "gpu-fraction": "0.5"},
        {TYPE: "training", "scheduling.k8s.io/group-name": "g"},
        {TYPE: "training", LIMIT_RANGER: "LimitRanger plugin set: cpu request for container main"},
    ),
    ("metadata", "ownerReferences"): (
        [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True}],
        [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}],
    ),
    ("spec", "containers"): ([{"name": "a"}, {"name": "b", "resources": {"limits": {"nvidia.com/gpu": "3"}}}],),
    ("spec", "initContainers"): ([{"name": "i", "resources": {"requests": {"cpu": "7"}}}],),
    ("spec", "volumes"): (
        [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        [{"name": "v", "image": {"reference": "a:1"}}],
    ),
    ("spec", "nodeName"): ("node-1",),
    ("spec", "affinity"): ({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}},),
    ("spec", "hostNetwork"): (True,),
    ("spec", "hostUsers"): (False,),
    ("spec", "nodeSelector"): ({"zone": "b"},),
    ("spec", "os"): ({"name": "windows"},),
    ("spec", "overhead"): ({"cpu": "7"},),
    ("spec", "preemptionPolicy"): ("Never",),
    ("spec", "priority"): (0, 7),
    ("spec", "priorityClassName"): ("mine",),
    ("spec", "resourceClaims"): ([{"name": "c", "resourceClaimName": "c"}],),
    ("spec", "resources"): ({"requests": {"cpu": "9"}},),
    ("spec", "runtimeClassName"): ("kata",),
    ("spec", "schedulerName"): ("volcano", "mine"),
    ("spec", "schedulingGates"): ([{"name": "kueue.x-k8s.io/admission"}], [{"name": "x"}]),
    ("spec", "schedulingGroup"): ({"podGroupName": "g"},),
    ("spec", "tolerations"): ([{"operator": "Exists"}],),
    ("spec", "topologySpreadConstraints"): ([{**_TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],),
    ("container", "name"): ("b",),
    ("container", "image"): ("a:1",),
    ("container", "ports"): ([{"containerPort": 80, "hostPort": 80}],),
    ("container", "resources"): ({"limits": {"nvidia.com/gpu": "2"}}, {"requests": {"cpu": "3"}}),
    ("container", "restartPolicy"): ("Always",),
    ("container", "restartPolicyRules"): ([{"action": "RestartAllContainers"}],),
}
CHANGES = [(*place, value) for place, values in FIELDS.items() for value in values]


def with_field(pod: Object, part: str, name: str, value: Any) -> Object:
    """Return `pod` with another value of one field."""
    if part == "container":
        first, *others = pod["spec"]["containers"]
        return {**pod, "spec": {**pod["spec"], "containers": [{**first, name: value}, *others]}}
    return {**pod, part: {**pod[part], name: value}}

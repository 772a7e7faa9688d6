"""AdmissionReviews with something wrong in them, as many as there are random numbers: no answer may fail or harm."""

import base64
import random
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from typing import Any

import jsonpatch
import orjson

from tests.support.attacks import attack_review
from tests.support.invariants import overruled_values
from tests.support.objects.clusters import DOMAIN, review
from webhook.policy.loader import built_in_policy

_POLICY = built_in_policy()
_ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 1.5, "", "x" * 300, "\x1b[31m", "NaN", "1e99", "80Gi", [], {}, [None], [[]], {"": {}},
    {"key": "k", "operator": "Exists"}, [{"key": None}], "system:", "nvidia.com/gpu", "kubernetes.io/hostname",
)  # fmt: skip
_KEYS = (
    "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes", "initContainers", "overhead",
    "resources", "resourceClaims", "schedulingGates", "nodeName", "priority", "schedulerName", "restartPolicy",
    "labels", "annotations", "ownerReferences", "namespace", "name", "status", "spec", "metadata", "requests",
    "matchExpressions", "values", "operator", "key", "topologyKey", "labelSelector", "maxSkew", "dryRun", "object",
)  # fmt: skip


def mutated(seed: int) -> Iterator[bytes]:
    """Yield reviews without end, each with one to six random changes in a pod as people write them, or a worse one."""
    chance = random.Random(seed)
    bases = [orjson.loads(review(number, shape=number)) for number in range(20)]
    bases += [orjson.loads(attack_review(number, spec)) for number, spec in enumerate(_RICH)]
    while True:
        content = deepcopy(chance.choice(bases))
        pod = content["request"]["object"]
        for _ in range(chance.randint(1, 6)):
            _change(pod if chance.random() < 0.95 else content, chance)
        yield orjson.dumps(content)


def _change(content: Any, chance: random.Random) -> None:
    """Put something odd somewhere below `content`, or take something away."""
    here = content
    while True:
        children = list(here.items()) if isinstance(here, dict) else list(enumerate(here))
        inner = [child for _, child in children if isinstance(child, dict | list) and child]
        if not inner or chance.random() < 0.25:
            break
        here = chance.choice(inner)
    if isinstance(here, dict):
        key = chance.choice([*here, *_KEYS]) if here else chance.choice(_KEYS)
        if key in here and chance.random() < 0.3:
            del here[key]
        else:
            here[key] = deepcopy(chance.choice(_ODD))
    elif here and chance.random() < 0.3:
        here.append(deepcopy(chance.choice(here)))
    else:
        here.insert(chance.randint(0, len(here)), deepcopy(chance.choice(_ODD)))


def harm(body: bytes, status: int, answer: bytes) -> str:
    """Return what is wrong with an answer to `body`; empty where nothing is."""
    if status >= 500:
        return f"status {status}: {answer[:200]!r}"
    if status != 200:
        return ""
    response = orjson.loads(answer)["response"]
    if "patch" not in response:
        return ""
    pod = orjson.loads(body)["request"]["object"]
    try:
        after = jsonpatch.apply_patch(pod, orjson.loads(base64.b64decode(response["patch"])))
    except Exception as error:
        return f"the patch does not apply: {error}"
    lost = [*islice(overruled_values(pod, after, _POLICY), 3)]
    return f"lost: {lost}" if lost else ""


_REQUIREMENT = {"key": f"{DOMAIN}/node.usage", "operator": "In", "values": ["training"]}
_SELECTOR = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["running"]}], "matchLabels": {"a": "b"}}
_POD_TERM = {"labelSelector": _SELECTOR, "topologyKey": "kubernetes.io/hostname", "namespaces": ["team-a"]}
_RICH: tuple[dict[str, Any], ...] = (
    {
        "nodeSelector": {"kubernetes.io/hostname": "node-00001"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [_REQUIREMENT], "matchFields": []}, {}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [_REQUIREMENT]}}
                ],
            },
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": _POD_TERM}]
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM]},
        },
    },
    {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": _SELECTOR,
                "matchLabelKeys": ["app"],
            }
        ],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}},
        ],
        "resourceClaims": [{"name": "card", "resourceClaimTemplateName": "card"}],
    },
    {
        "initContainers": [{"name": "setup", "image": "setup:1", "restartPolicy": "Always"}],
        "containers": [
            {
                "name": "main",
                "image": "main:1",
                "ports": [{"hostPort": 80, "containerPort": 80, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"}},
            }
        ],
        "overhead": {"cpu": "100m"},
        "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}],
        "schedulingGates": [{"name": "gate"}],
        "priorityClassName": "high",
    },
)

"""The worst requests of a user who may create one pod, or of a client that can connect to the port."""

import gzip
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import orjson

from tests.support.objects.clusters import DOMAIN

# The start of a TLS record that announces 16 KiB and does not go on.
PARTIAL_RECORD = b"\x16\x03\x01\x40\x00\x01" + bytes(64)
_LARGEST_BYTES = 3 * 1024 * 1024
_PRODUCT_TAINTS = [{"operator": "Exists"}]


def attack_review(number: int, spec: Mapping[str, Any], user: str = "mallory", namespace: str = "team-m") -> bytes:
    """The AdmissionReview of pod `number` with `spec` beside one container, as the API server sends it."""
    request = {
        "uid": f"attack-{number}",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": user},
        "object": attack_pod(f"attack-{number}", spec),
        "dryRun": True,
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def attack_pod(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A training pod with `spec` beside one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {f"{DOMAIN}/workload-type": "training"}},
        "spec": {"containers": [{"name": "main", "image": "main:1"}], "tolerations": _PRODUCT_TAINTS, **spec},
    }


def _selector(keys: int) -> dict[str, Any]:
    return {"nodeSelector": {f"k{number}": "" for number in range(keys)}}


def _anti_affinity(terms: int) -> dict[str, Any]:
    required = [
        {
            "labelSelector": {"matchExpressions": [{"key": f"k{number}", "operator": "DoesNotExist"}]},
            "topologyKey": "kubernetes.io/hostname",
        }
        for number in range(terms)
    ]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _preferred_affinity(terms: int) -> dict[str, Any]:
    preferred = [
        {
            "weight": 1 + number % 100,
            "podAffinityTerm": {
                "labelSelector": {"matchLabels": {"app": "running"}},
                "topologyKey": "kubernetes.io/hostname",
                "namespaces": [f"team-{number}", "team-a"],
            },
        }
        for number in range(terms)
    ]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def _spread(constraints: int) -> dict[str, Any]:
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1 + number,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "running"}},
            }
            for number in range(constraints)
        ]
    }


def _volumes(count: int) -> dict[str, Any]:
    return {
        "volumes": [
            {"name": f"v{number}", "persistentVolumeClaim": {"claimName": f"claim-with-a-long-name-{number:05}"}}
            for number in range(count)
        ]
    }


def _resources(count: int) -> dict[str, Any]:
    requests = {f"e.com/r{number}": "1" for number in range(count)}
    return {"containers": [{"name": "main", "image": "main:1", "resources": {"requests": requests}}]}


def _terms(count: int, requirements: int) -> dict[str, Any]:
    terms = [
        {
            "matchExpressions": [
                {"key": f"k{number}", "operator": "NotIn", "values": [str(each)]} for each in range(requirements)
            ]
        }
        for number in range(count)
    ]
    required = {"nodeSelectorTerms": terms}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _filled(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [item] * (_LARGEST_BYTES // (len(orjson.dumps(item)) + 1))


WORST: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "21,000 nodeSelector keys": lambda: _selector(21_000),
    "1,400 anti-affinity terms": lambda: _anti_affinity(1_400),
    "1,200 preferred affinity terms": lambda: _preferred_affinity(1_200),
    "1,200 spread constraints": lambda: _spread(1_200),
    "2,000 claims": lambda: _volumes(2_000),
    "11,000 resources": lambda: _resources(11_000),
    "60 terms of 60 requirements": lambda: _terms(60, 60),
    "3 MiB of tolerations": lambda: {"tolerations": _filled({"key": "k", "operator": "Exists"})},
    "3 MiB of empty tolerations": lambda: {"tolerations": _filled({})},
    "3 MiB of containers": lambda: {"containers": _filled({"name": "main", "image": "main:1"})},
}
"""The specs of pods that cost the most, by what they are made of; each is one that an API server would send."""


def distinct_spec(number: int) -> Mapping[str, Any]:
    """A spec of about 12.7 KB that no other number gives."""
    return _selector(0) | {"nodeSelector": {f"key-{number}-{each}": "some value" for each in range(420)}}


def gzip_bomb() -> bytes:
    """A body of 1 MB that becomes 1 GiB."""
    return gzip.compress(bytes(1024 * 1024 * 1024), compresslevel=9)


def partial_handshakes(port: int, count: int, source: str = "127.0.0.1") -> list[socket.socket]:
    """Open so many connections from `source` that each send a part of a TLS record; those that are open."""
    found = []
    for _ in range(count):
        each = socket.socket()
        each.settimeout(0.5)
        with suppress(OSError):
            each.bind((source, 0))
            each.connect(("127.0.0.1", port))
            each.send(PARTIAL_RECORD)
        found.append(each)
    return found

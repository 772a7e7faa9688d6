"""A healthy installation as data: the manifests of deploy/, three nodes, and a webhook that answers."""

import re
import shlex
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509

from certs.cluster.probe import Called, Outcome
from certs.registration import Target, with_ca_bundle
from placement_doctor.check import Finding, diagnose
from placement_doctor.cluster import Cluster, ServerClock, Trial
from placement_doctor.registry import CHECKS
from placement_doctor.rights import needed_rights
from placement_doctor.sample_pods import judge, sample_pod
from placement_doctor.source import Source
from tests.acceptance.placing.pools import pool_node
from tests.support.admission import policy_with
from tests.support.objects.manifests import Object, container_of, read
from tests.support.programs.command import understand
from tests.support.tls.certificates import FRESH, NOW
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.kube.release import Release
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

NAMESPACE, CONFIGURATION = "placement-webhook", "00-placement-webhook"
ADDRESS = "placement-webhook.placement-webhook.svc:443"
POLICY = policy_with()
USAGE, PRODUCT = "maip.mxsf.io/node.usage", "nvidia.com/gpu.product"
WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
NO_SIGN = SchedulerEvidence(frozenset(), "")


@cache
def _of_deploy(name: str) -> tuple[Object, ...]:
    return tuple(read(f"base/{name}.yaml"))


def manifest(name: str) -> Object:
    """Return a copy of the object in a file of deploy/base."""
    (content,) = _of_deploy(name)
    return deepcopy(content)


def in_own_namespace(name: str) -> Object:
    """Return a copy of the object in a file of deploy/base, in the namespace of the webhook."""
    made = manifest(name)
    made["metadata"]["namespace"] = NAMESPACE
    return made


def named(name: str, **metadata: Any) -> Object:
    """Return an object with a name alone."""
    return {"metadata": {"name": name, **metadata}}


def slices(*, ready: bool = True) -> tuple[Object, ...]:
    """Return the EndpointSlice of two servers."""
    endpoints = [{"addresses": [f"10.1.0.{n}"], "conditions": {"ready": ready}} for n in (1, 2)]
    return ({"metadata": {"name": "s"}, "ports": [{"name": "https", "port": 8443}], "endpoints": endpoints},)


def deployment(**status: Any) -> Object:
    """Return the Deployment of deploy/, with both replicas ready."""
    made = manifest("deployment")
    made["metadata"]["namespace"] = NAMESPACE
    return {**made, "status": {"readyReplicas": 2, **status}}


def with_args(workload: Object, *args: str, without: str = "") -> Object:
    """Return the workload with these arguments, and without another one."""
    container = container_of(workload)
    container["args"] = [each for each in container["args"] if each != without] + list(args)
    return workload


def controller(**status: Any) -> Object:
    """Return the Deployment of the certs controller, which is ready."""
    (made,) = (each for each in read("overlays/self-managed/certs-controller.yaml") if each["kind"] == "Deployment")
    return {**made, "status": {"readyReplicas": 1, **status}}


def self_managed(*others: Object, **fields: Any) -> Cluster:
    """Return a healthy installation whose certificates a controller maintains; `others` are in place of it."""
    deployments = (deployment(), *(others or (controller(),)))
    return make_installation(objects={**objects(), Source.DEPLOYMENTS: deployments}, **fields)


def configuration() -> Object:
    """Return the webhook configuration of deploy/, with a caBundle."""
    assert FRESH.ca_certificate is not None
    return with_ca_bundle(manifest("mutatingwebhookconfiguration"), FRESH.ca_certificate)


def called(*, trusted: bool = True, detail: str = "", pem: bytes | None = FRESH.certificate) -> Called:
    """Return the result of a handshake; `pem` is the served certificate."""
    certificate = x509.load_pem_x509_certificate(pem) if pem else None
    return Called(ADDRESS, Outcome.TRUSTED if trusted else Outcome.UNTRUSTED, detail, certificate)


def probes(result: Called) -> tuple[tuple[Called, ...], ...]:
    """Return one probe with this result for each webhook."""
    return ((result,) * 4,)


@cache
def admitted(policy: Policy = POLICY) -> Trial:
    """Return the dry-run creation of a pod that was injected."""
    pod = judge(sample_pod(policy, "training"), "default", policy).pod
    return Trial("default", "training", 0.05, pod)


def objects() -> dict[Source, tuple[Object, ...]]:
    """Return what was read, by source."""
    return {
        Source.CONFIGURATIONS: (configuration(),),
        Source.NAMESPACES: tuple(map(named, ("default", "kube-system", NAMESPACE, "team-a"))),
        Source.NODES: tuple(pool_node(f"{pool}-1", pool) for pool in ("training", "inference", "hybrid")),
        Source.PODS: (),
        Source.SERVICE: (manifest("service"),),
        Source.ENDPOINTS: slices(),
        Source.DEPLOYMENTS: (deployment(),),
        Source.BUDGETS: (manifest("poddisruptionbudget"),),
        Source.ALL_BUDGETS: (),
        Source.NETWORK_POLICIES: (in_own_namespace("networkpolicy"),),
        Source.QUOTAS: (in_own_namespace("resourcequota"),),
        Source.LIMIT_RANGES: (),
        Source.PRIORITY_CLASSES: tuple(map(named, ("system-cluster-critical", "system-node-critical"))),
        Source.LEASES: (),
        Source.EXPORTED: (),
        Source.QUEUES: (named("default"),),
        Source.NODE_POOLS: (),
        Source.TOPOLOGY_REQUESTS: (),
    }


def make_installation(**fields: Any) -> Cluster:
    """Return a healthy installation but for these fields of `Cluster`, or for `policy` and `others` of its file."""
    file = PolicySet.of(fields.pop("policy", POLICY), fields.pop("others", ()))
    base = Cluster(
        NOW,
        Target(),
        file,
        objects(),
        probes=probes(called()),
        trial=admitted(),
        rights=tuple(needed_rights(())),
        clock=ServerClock(NOW, NOW - timedelta(seconds=1), NOW),
        release=Release.of("v1.37.2", "version"),
        evidence=SchedulerEvidence(frozenset({"scheduling.volcano.sh"}), ""),
    )
    return replace(base, **fields)


def read_of(source: Source, *content: Object) -> Cluster:
    """Return a healthy installation in which these objects were read of `source`."""
    return make_installation(objects={**objects(), source: content})


def under(policy: Policy) -> Cluster:
    """Return a healthy installation with this policy in force."""
    has_training = "training" in policy.spec.workload_types
    return make_installation(policy=policy, trial=admitted(policy) if has_training else None)


def with_webhooks(**fields: Any) -> Cluster:
    """Return an installation whose webhook for pods has these fields."""
    changed = configuration()
    changed["webhooks"][0] |= fields
    return read_of(Source.CONFIGURATIONS, changed)


def faults(installation: Cluster) -> list[Finding]:
    """Return the findings of all checks."""
    return list(diagnose(installation, CHECKS).findings)


def found(installation: Cluster, check: str) -> list[Finding]:
    """Return the findings of one check."""
    (chosen,) = (each for each in CHECKS if each.id == check)
    findings = list(diagnose(installation, [chosen]).findings)
    for each in findings:
        check_commands(each.remedy)
    return findings


def check_commands(remedy: str) -> None:
    """Check that our own program understands its commands in a remedy; kubectl and Helm run theirs elsewhere."""
    for command in commands_of(remedy):
        if command[0] == "placement-webhook":
            understand(command[1:])


def commands_of(remedy: str) -> list[list[str]]:
    """Return the words of the commands in a remedy."""
    commands = re.findall("`([^`]+)`", remedy)
    return [shlex.split(each) for each in commands if each.startswith(("kubectl ", "helm ", "placement-webhook "))]


def lease(name: str, renewed: datetime, written: datetime) -> Object:
    """Return a Lease that its holder renewed by its clock at `renewed`, and the API server wrote at `written`."""
    entry = {"time": f"{written:%Y-%m-%dT%H:%M:%SZ}", "fieldsV1": {"f:spec": {"f:renewTime": {}}}}
    metadata = {"name": name, "namespace": "kube-node-lease", "managedFields": [entry]}
    return {"metadata": metadata, "spec": {"renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}"}}


def texts(findings: Iterable[Finding]) -> list[str]:
    """Return what is wrong, with the place."""
    return [f"{each.where}: {each.what}" for each in findings]


def node_of(
    pool: str, *, labels: Mapping[str, str | None] | None = None, taints: Iterable[str] | None = None
) -> Object:
    """Return a node of the pool with other labels (None: without it) and other taints (KEY=VALUE:EFFECT)."""
    made = pool_node(f"{pool}-1", pool)
    kept = {**made["metadata"]["labels"], **(labels or {})}
    made["metadata"]["labels"] = {key: value for key, value in kept.items() if value is not None}
    if taints is not None:
        parts = (text.replace(":", "=").split("=") for text in taints)
        made["spec"]["taints"] = [{"key": key, "value": value, "effect": effect} for key, value, effect in parts]
    return made


def deployed(scheduler: str) -> Object:
    """Return a Deployment that names the scheduler in an argument."""
    container = {"name": "main", "args": [f"--scheduler-name={scheduler}"]}
    return {"metadata": {"name": "x", "namespace": "x"}, "spec": {"template": {"spec": {"containers": [container]}}}}


def quota(limit: dict[str, str], *scopes: str, **status: Any) -> Object:
    """Return a ResourceQuota in team-a."""
    return {**named("q", namespace="team-a"), "spec": {"hard": limit, "scopes": list(scopes)}, "status": status}

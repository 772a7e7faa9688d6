"""The part of a cluster that was read, which is the input of every check. It is immutable."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from certs.cluster.probe import Called
from certs.registration import Endpoint, Target
from certs.webhook_rules import PODS
from placement_doctor.source import Source
from webhook.admission.missed import MissedPod
from webhook.cli.inputs.installed_policy import StoredPolicy
from webhook.cli.inputs.installed_servers import WORKLOADS, ready_endpoints, servers_of
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.documents import documents
from webhook.documents.documents import JsonObject
from webhook.documents.parts import listed, texts
from webhook.kube.names import NAMESPACE_NAME_LABEL
from webhook.kube.release import Release
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicyOrSet, PolicySet


class Trial(NamedTuple):
    """The dry-run creation of a pod that the policy applies to: the pod that would be stored, or the error.

    `not_enforced` is the reason why the policy is not enforced for the pod, such as shadow mode, or None if it is.
    """

    namespace: str
    workload_type: str
    seconds: float
    pod: JsonObject | None = None
    error: str = ""
    not_enforced: str | None = None


class Role(Enum):
    """The roles of the manifests: file, and consequences of a missing required and a missing optional permission."""

    SERVER = ("base/rbac.yaml", "without a view, every verdict is Unknown", "decisions and metrics are less complete")
    POLICIES = (
        "overlays/crd/rbac.yaml",
        "without list and watch, a replica that starts stays unready, and the others keep the policies that they know",
        "their status is not written",
    )
    EXPORTED = (
        "overlays/exported/rbac.yaml",
        "the exported policy is not kept in step with the policy in force",
        "",
    )
    CERTS = ("overlays/self-managed/certs-rbac.yaml", "nothing renews the certificates", "")

    def __init__(self, file: str, effect: str, optional_effect: str) -> None:
        self.file, self.effect, self.optional_effect = file, effect, optional_effect


class Right(NamedTuple):
    """A permission that a service account needs for its `role`, and whether it has the permission.

    `resource` can have a subresource, such as `pods/log`. `name` and `namespace` are those of the object, or empty for
    any object. `account` is `NAMESPACE/NAME`.
    """

    group: str
    resource: str
    verb: str
    is_required: bool
    is_held: bool = True
    role: Role = Role.SERVER
    name: str = ""
    namespace: str = ""
    account: str = ""


class Unprotected(NamedTuple):
    """Bound pods of gangs that no PodDisruptionBudget selects: the name of the first pod, and the number of pods."""

    first: str
    number: int


class ServerClock(NamedTuple):
    """The time `server` of the API server, read when the clock of this machine was between `before` and `after`."""

    server: datetime
    before: datetime
    after: datetime


@dataclass(frozen=True)
class Cluster:
    """The part that was read of a cluster with an installation of the webhook.

    `target` has the names of the installation's objects. `objects` are keyed by source; for a source that could not be
    read, `refusals` has the reason. `file` are the policies of the policy file: those `stored` in its ConfigMap, or
    else `given`, or else the built-in policy. `accepted` are the policies of PlacementPolicy objects, and
    `policy_objects` the objects themselves, or None if their kind is not served; both are empty if no server follows
    the objects. `in_force` is the default policy that a replica reports, which then is also that of `file`, or None if
    no replica was asked. `unserved_kinds` are the kinds of an exported policy that the API server does not serve.
    `bound_schedulers` are the schedulers of running pods, each with the time of the newest binding, or empty if this is
    not known. `selects_a_pod` is true if the objectSelector of the webhook for pods selects a pod of the cluster, or
    None without an objectSelector or without pods. `missed` are the first of `missed_count` missed pods. `unprotected`
    are pods of gangs by namespace and workload type. `named_topologies` and `kai_topologies` are those of `PodsRead`.
    `networks` has a pod of the pod network, or of its operator, by namespace. `probes` has, for each address, the TLS
    handshake for each webhook.
    """

    now: datetime
    target: Target
    file: PolicySet
    objects: Mapping[Source, tuple[JsonObject, ...]] = field(default_factory=dict)
    refusals: Mapping[Source, str] = field(default_factory=dict)
    given: PolicyOrSet | None = None
    stored: StoredPolicy | None = None
    in_force: Policy | None = None
    accepted: tuple[Policy, ...] = ()
    policy_objects: tuple[JsonObject, ...] | None = ()
    bound_schedulers: Mapping[str, str] = field(default_factory=dict)
    selects_a_pod: bool | None = None
    missed: tuple[MissedPod, ...] = ()
    missed_count: int = 0
    unprotected: Mapping[tuple[str, str], Unprotected] = field(default_factory=dict)
    named_topologies: Mapping[tuple[str, str], str] = field(default_factory=dict)
    kai_topologies: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, str] = field(default_factory=dict)
    probes: tuple[tuple[Called | None, ...], ...] = ()
    trial: Trial | None = None
    rights: tuple[Right, ...] = ()
    clock: ServerClock | None = None
    release: Release | None = None
    evidence: SchedulerEvidence | None = None
    unserved_kinds: frozenset[str] = frozenset()

    def of(self, source: Source) -> tuple[JsonObject, ...]:
        """Return the objects of `source`, or none if it was not read."""
        return self.objects.get(source, ())

    def own(self, source: Source) -> Iterator[JsonObject]:
        """Return the objects of `source` in the namespace of the webhook."""
        namespace = self.target.namespace
        return (each for each in self.of(source) if documents.field(each, "metadata", "namespace") == namespace)

    def knows(self, source: Source) -> bool:
        """Return whether `source` was read."""
        return source in self.objects

    @property
    def server_time(self) -> datetime:
        """The current time by the API server's clock, or by the clock of this machine if the former was not read."""
        return self.clock.server if self.clock else self.now

    @cached_property
    def policies(self) -> PolicySet:
        """The policies in force, as far as they are known. Checks use these policies."""
        return self.file.with_objects(self.accepted)

    @property
    def policy(self) -> Policy:
        """The default policy in force."""
        return self.policies.default

    def policy_of(self, namespace: str) -> Policy:
        """Return the policy in force for `namespace`."""
        return self.policies.of_namespace(namespace, self.labels_by_namespace.get(namespace))

    def place_of(self, policy: Policy) -> str:
        """Return the place of a policy in messages."""
        if policy in self.file.others:
            return f"policy {policy.name}"
        return f"PlacementPolicy {policy.name}" if policy in self.accepted else "policy"

    @property
    def mark(self) -> str:
        """The policy annotation that a server with any of the policies wrote to the dry-run pod, or ""."""
        annotations = texts((self.trial and self.trial.pod) or {}, "metadata", "annotations")
        return next((annotations[key] for each in self.policies if (key := each.policy_annotation) in annotations), "")

    @property
    def place(self) -> str:
        """The name of the webhook configuration in messages."""
        return f"MutatingWebhookConfiguration {self.target.configuration}"

    @cached_property
    def configuration(self) -> JsonObject | None:
        """The webhook configuration, or None if there is none, or it was not read."""
        found = self.of(Source.CONFIGURATIONS)
        return next((each for each in found if name_of(each) == self.target.configuration), None)

    @property
    def webhooks(self) -> list[JsonObject]:
        """The webhooks of the configuration."""
        return listed(self.configuration or {}, "webhooks")

    @property
    def pods_webhook(self) -> tuple[str, JsonObject] | None:
        """The webhook for pods with its place in messages: the webhook `PODS`, or else the first, or None if none."""
        entries = list(enumerate(self.webhooks))
        own = [each for each in entries if each[1].get("name") == PODS] or entries
        return (f"{self.place}: webhooks[{own[0][0]}]", own[0][1]) if own else None

    @property
    def called(self) -> list[Called]:
        """The TLS handshakes of all probes."""
        return [each for probe in self.probes for each in probe if each is not None]

    @property
    def is_called_by_service(self) -> bool:
        """True if API servers call a Service, and not a URL, for at least half of the webhooks."""
        services, urls = (
            sum(bool(documents.field(each, "clientConfig", kind)) for each in self.webhooks)
            for kind in ("service", "url")
        )
        return services > 0 and services >= urls

    @cached_property
    def service(self) -> JsonObject | None:
        """The Service, or None if there is none, or it was not read."""
        return next(iter(self.of(Source.SERVICE)), None)

    @cached_property
    def deployment(self) -> JsonObject | None:
        """The workload of the servers, or None if there is none, or it was not read."""
        return servers_of(self.of(Source.DEPLOYMENTS), self.service, self.target.namespace)

    @property
    def ready_endpoints(self) -> list[tuple[JsonObject, JsonObject]]:
        """The ready endpoints of the Service, each with its EndpointSlice."""
        return ready_endpoints(self.of(Source.ENDPOINTS))

    @property
    def ready_addresses(self) -> list[str]:
        """The addresses of the ready endpoints of the Service, as HOST:PORT."""
        found: list[str] = []
        for endpoint, each in self.ready_endpoints:
            ports = [port["port"] for port in listed(each, "ports") if isinstance(port.get("port"), int)]
            found += (str(Endpoint(host, ports[0], "")) for host in endpoint.get("addresses") or () if ports)
        return found

    @property
    def deployment_kind(self) -> str:
        """The kind of the workload of the servers."""
        kind = (self.deployment or {}).get("kind")
        return kind if kind in WORKLOADS else WORKLOADS[0]

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of the namespace.

        If it was not read, return the labels that the API server sets by default.
        """
        return self.labels_by_namespace.get(name) or {NAMESPACE_NAME_LABEL: name}

    @cached_property
    def labels_by_namespace(self) -> dict[str, Mapping[str, str]]:
        """The labels of the namespaces that were read."""
        return {
            name_of(each): {NAMESPACE_NAME_LABEL: name_of(each), **texts(each, "metadata", "labels")}
            for each in self.of(Source.NAMESPACES)
        }


def name_of(content: Mapping[str, Any]) -> str:
    """Return the name of an object, or `namespace/name`."""
    names = (documents.field(content, "metadata", key) for key in ("namespace", "name"))
    return "/".join(str(each) for each in names if each)

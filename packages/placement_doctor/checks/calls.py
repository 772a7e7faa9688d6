"""API servers call the webhooks for the right objects, in the right order and in time."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from certs.registration import manifest
from certs.webhook_rules import PODS, WebhookRules
from placement_doctor import commands, matching
from placement_doctor.check import Finding, check, error, named, warning
from placement_doctor.cluster import Cluster, name_of
from placement_doctor.matching import is_called_for_pods, selects_namespace, timeout_seconds
from placement_doctor.source import Source
from placement_doctor.workloads import controller_namespace, controller_of
from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import listed
from webhook.kube.selectors import selector_matches

_SYSTEM = "kube-system"
_REINVOCATION = "reinvocationPolicy"
# Source: k8s.io/apiserver/pkg/server/config.go, RequestTimeout; the flag --request-timeout
_REQUEST_SECONDS = 60
_SHIPPED_SECONDS = 5


class Peer(NamedTuple):
    """Another project whose webhooks read or change injected fields: parts of their names, and what they do."""

    name: str
    parts: tuple[str, ...]
    concern: str


_CLUSTER_SCOPED = (["namespaces"], ["placementpolicies"])
# Source: the manifests and charts of the projects.
PEERS = (
    Peer(
        "Volcano", ("volcano",), "reads schedulerName and the queue, and sets schedulerName, affinity and tolerations"
    ),
    Peer("KAI", ("kai-admission", "admission.run.ai", "kai-scheduler"), "reads schedulerName, by a matchCondition"),
    Peer("Run:ai", ("runai",), "reads and sets schedulerName"),
    Peer("Kueue", ("kueue",), "reads the queue, affinity and tolerations"),
    Peer("HAMi", ("hami", "vgpu"), "reads and sets schedulerName"),
    Peer("Koordinator", ("koordinator", "koord-manager"), "sets schedulerName, priority and affinity"),
    Peer("Kyverno", ("kyverno",), "reads and sets any field"),
    Peer("multiarch tuning operator", ("pod-placement-scheduling-gate", "multiarch"), "reads and sets affinity"),
    Peer("NVIDIA Grove", ("grove",), "sets schedulerName and gangs"),
)


@check(
    "exclude both with a namespaceSelector on `kubernetes.io/metadata.name`",
    needs={Source.CONFIGURATIONS, Source.NAMESPACES, Source.PODS},
)
def selectors(cluster: Cluster) -> Iterator[Finding]:
    """A webhook selects kube-system, its own namespace or that of a CNI operator, or selects no namespace or pod.

    These must work without it. It is an error if objects there are rejected while no server answers.
    """
    yield from _selecting_none(cluster)
    needed = _needed(cluster)
    caught: dict[int, list[str]] = {}
    for index, webhook in enumerate(cluster.webhooks):
        # A webhook for objects without a namespace is called for no object in them.
        if any(rule.get("resources") not in _CLUSTER_SCOPED for rule in listed(webhook, "rules")):
            # With Ignore, the pods of a network only wait for the timeout.
            due = [each for each in needed if _fails(webhook) or each not in cluster.networks or each == _SYSTEM]
            selected = (name for name in due if selects_namespace(webhook, cluster.namespace_labels(name)))
            if names := [name for name in selected if matching.may_send_pod(webhook, name)]:
                caught[index] = names
    excluding = {f"/webhooks/{each}/namespaceSelector": _excluding(cluster, each) for each in caught}
    command = commands.patched(cluster, excluding)
    for index, names in caught.items():
        webhook = cluster.webhooks[index]
        found, effect = (error, "are refused") if _fails(webhook) else (warning, "wait for the timeout")
        whose = " and ".join(needed[name] for name in names)
        objects = "pods" if is_called_for_pods(webhook) else "workload objects"
        what = f"selects {' and '.join(names)}: while no server answers, {objects} of {whose} {effect}"
        yield found(f"{cluster.place}: webhooks[{index}].namespaceSelector", what, command)


def _fails(webhook: JsonObject) -> bool:
    return bool(webhook.get("failurePolicy", "Fail") == "Fail")


def _needed(cluster: Cluster) -> Mapping[str, str]:
    """Return the namespaces whose objects must be created without the webhook, with the purpose of each."""
    needed = {_SYSTEM: "network and storage", cluster.target.namespace: "the webhook itself"}
    if controller_of(cluster) is not None:
        needed.setdefault(controller_namespace(cluster), "the certs controller")
    for namespace, pod in cluster.networks.items():
        needed.setdefault(namespace, f"the pod network ({pod})")
    return needed


def _excluding(cluster: Cluster, index: int) -> JsonObject:
    """Return the namespaceSelector of a webhook, extended to exclude the namespaces that must not depend on it."""
    selector: JsonObject = field(cluster.webhooks[index], "namespaceSelector") or {}
    values = [*_needed(cluster)]
    excluded = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": values}
    return {**selector, "matchExpressions": [*listed(selector, "matchExpressions"), excluded]}


def _selecting_none(cluster: Cluster) -> Iterator[Finding]:
    names = [name_of(each) for each in cluster.of(Source.NAMESPACES)]
    if cluster.pods_webhook is None or not names:
        return
    place, webhook = cluster.pods_webhook
    if not any(selects_namespace(webhook, cluster.namespace_labels(name)) for name in names):
        what = "selects no namespace of the cluster, so no pod is sent"
        remedy = "label the namespaces that it is to select, or correct the selector"
        yield warning(f"{place}.namespaceSelector", what, remedy)
    if cluster.selects_a_pod is False:
        what = "no pod of the cluster has labels that it selects, so no pod is sent"
        removed = commands.patched(cluster, {f"/webhooks/{cluster.webhooks.index(webhook)}/objectSelector": {}})
        yield warning(f"{place}.objectSelector", what, f"{removed} selects every pod; or set the labels on pods")


@check(
    "rename the configuration so that it sorts first: the default is 00-placement-webhook",
    needs={Source.CONFIGURATIONS},
)
def order(cluster: Cluster) -> Iterator[Finding]:
    """The webhook of a peer that depends on the injected fields is called first, and not again.

    API servers call configurations in the order of their names. In the second round, they only call webhooks with
    `reinvocationPolicy: IfNeeded` that they called in the first round, which a condition or selector can prevent.

    Source: k8s.io/apiserver/pkg/admission/configuration/mutating_webhook_manager.go
    """
    own = cluster.target.configuration
    if cluster.configuration is None:
        return
    for configuration in cluster.of(Source.CONFIGURATIONS):
        name = name_of(configuration)
        for position, webhook in enumerate(listed(configuration, "webhooks") if name < own else ()):
            names = (name, str(webhook.get("name", "")))
            peer = next((each for each in PEERS if any(part in text for part in each.parts for text in names)), None)
            is_conditional = webhook.get("matchConditions") or webhook.get("objectSelector")
            is_called_again = webhook.get(_REINVOCATION) == "IfNeeded" and not is_conditional
            if peer is not None and is_called_for_pods(webhook) and not is_called_again:
                what = f"{peer.name} {peer.concern}, and is called before {own}: it does not see what is injected"
                where = f"MutatingWebhookConfiguration {name}: webhooks[{position}]"
                yield warning(where, what, _renamed(cluster, name))


def _renamed(cluster: Cluster, before: str) -> str:
    """Return the remedy that renames the configuration without a moment in which no webhook is called."""
    renamed = replace(cluster, target=replace(cluster.target, configuration="NAME"))
    deleted = commands.command("kubectl", "delete", "mutatingwebhookconfiguration", cluster.target.configuration)
    return f"with a NAME that sorts before {before}: {commands.certs(renamed, 'register')}, then {deleted}"


@check("set `reinvocationPolicy: IfNeeded`; admission is idempotent", needs={Source.CONFIGURATIONS})
def reinvocation(cluster: Cluster) -> Iterator[Finding]:
    """The webhook for pods is not called again after a later webhook has changed the pod."""
    own = cluster.pods_webhook
    if own is None or own[1].get(_REINVOCATION) == "IfNeeded":
        return
    later = [
        name_of(each)
        for each in cluster.of(Source.CONFIGURATIONS)
        if name_of(each) > cluster.target.configuration and any(map(is_called_for_pods, listed(each, "webhooks")))
    ]
    who = f": {', '.join(sorted(later)[:3])}" if later else ""
    what = f"Never: what later webhooks add to pods (annotations, containers) is not seen{who}"
    path = f"/webhooks/{cluster.webhooks.index(own[1])}/{_REINVOCATION}"
    remedy = f"{commands.patched(cluster, {path: 'IfNeeded'})}; admission is idempotent"
    yield warning(f"{own[0]}.{_REINVOCATION}", what, remedy)


@check(
    "`placement-webhook certs register --policy FILE`, or apply `placement-webhook certs manifest --policy FILE`",
    needs={Source.CONFIGURATIONS, Source.POLICY},
)
def match_conditions(cluster: Cluster) -> Iterator[Finding]:
    """The rules or matchConditions of a webhook differ from those that the policy generates."""
    wanted = {each["name"]: each for each in manifest(cluster.target, WebhookRules.of(cluster.policies))["webhooks"]}
    for index, webhook in enumerate(cluster.webhooks):
        meant = wanted.get(str(webhook.get("name")))
        if meant is None:
            continue
        where = f"{cluster.place}: webhooks[{index}]"
        if changed := _changed(_conditions(webhook), _conditions(meant)):
            remedy = _regenerated(cluster, index, meant, "matchConditions")
            yield warning(f"{where}.matchConditions", f"not as the policy generates them: {changed}", remedy)
        if missing := sorted(_covered(meant) - _covered(webhook)):
            what = f"lack what the policy covers: {named(map('/'.join, missing))}"
            yield warning(f"{where}.rules", what, _regenerated(cluster, index, meant, "rules"))


def _conditions(webhook: JsonObject) -> dict[object, object]:
    return {each.get("name"): each.get("expression") for each in listed(webhook, "matchConditions")}


def _changed(held: Mapping[object, object], meant: Mapping[object, object]) -> str:
    parts = {
        "missing": [name for name in meant if name not in held],
        "added": [name for name in held if name not in meant],
        "changed": [name for name in held if name in meant and held[name] != meant[name]],
    }
    return "; ".join(f"{word} {named(map(str, names), 3)}" for word, names in parts.items() if names)


def _covered(webhook: JsonObject) -> set[tuple[str, str, str]]:
    """Return the (operation, group, resource) that the rules of the webhook cover."""
    return {
        (str(operation), str(group), str(resource))
        for rule in listed(webhook, "rules")
        for operation in rule.get("operations") or ()
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
    }


def _regenerated(cluster: Cluster, index: int, wanted: JsonObject, name: str) -> str:
    """Return the remedy that sets the field `name` of a webhook to `wanted`.

    The field of the webhook for pods does not depend on the policy.
    """
    if wanted["name"] == PODS:
        return commands.patched(cluster, {f"/webhooks/{index}/{name}": wanted[name]})
    stored = cluster.stored
    where = f"; FILE is in ConfigMap {cluster.target.namespace}/{stored.name}" if stored is not None else ""
    return f"{commands.covering(cluster)}{where}"


@check(
    "lower `timeoutSeconds`: the webhook answers in milliseconds; deploy/base has 5",
    needs={Source.CONFIGURATIONS, Source.NAMESPACES},
)
def timeouts(cluster: Cluster) -> Iterator[Finding]:
    """The timeout of the webhook is long, or all webhooks for a pod together can take as long as a request.

    API servers call mutating webhooks one after the other. The sum is computed for the namespace with the largest one.
    """
    given = enumerate(map(timeout_seconds, cluster.webhooks))
    long = {index: seconds for index, seconds in given if seconds > matching.DEFAULT_TIMEOUT_SECONDS}
    command = commands.patched(cluster, {f"/webhooks/{each}/timeoutSeconds": _SHIPPED_SECONDS for each in long})
    for index, seconds in long.items():
        where = f"{cluster.place}: webhooks[{index}].timeoutSeconds"
        yield warning(where, f"{seconds} s: a webhook that hangs delays each request by this", command)
    called = [
        (name_of(configuration), matching.namespaces_of(webhook), timeout_seconds(webhook))
        for configuration in cluster.of(Source.CONFIGURATIONS)
        for webhook in listed(configuration, "webhooks")
        if is_called_for_pods(webhook)
    ]
    worst, names = 0, list[str]()
    for namespace in dict.fromkeys(("default", *map(name_of, cluster.of(Source.NAMESPACES)))):
        labels = cluster.namespace_labels(namespace)
        selecting = [(name, seconds) for name, selector, seconds in called if selector_matches(selector, labels)]
        total = sum(seconds for _, seconds in selecting)
        if total > worst:
            worst, names = total, [name for name, _ in selecting]
    if cluster.configuration is not None and worst >= _REQUEST_SECONDS:
        what = f"their timeouts add up to {worst} s, and a request ends after {_REQUEST_SECONDS} s"
        where = f"MutatingWebhookConfigurations {named(dict.fromkeys(names))}"
        yield warning(where, what, "lower timeoutSeconds of the longest ones")

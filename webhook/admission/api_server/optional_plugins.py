"""Admission plugins that are off by default, for a pod that no API server has seen.

No object of a cluster shows which of them are enabled. Some platforms always enable one, and the labels of their nodes
identify the platform. In other clusters it is not known whether a plugin is enabled. If it would change the pod, the
pod is evaluated with the plugin and without it.

Source: k8s.io/kubernetes/plugin/pkg/admission/{podnodeselector,podtolerationrestriction,extendedresourcetoleration}
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject
from webhook.kube.pod.amounts import is_extended_resource
from webhook.kube.pod.taints import NO_SCHEDULE, covers
from webhook.placement.framework.result import Placement

_DEFAULT_TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations"
_ALLOWED_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_CONFLICT = "pod node label selector conflicts with its namespace node label selector"


class OptionalPlugin(NamedTuple):
    """A plugin. `change` takes a pod, the snapshot and the annotations of the namespace, and returns the changed pod.

    `change` raises ValueError with the plugin's message for a pod that the plugin rejects. If `annotations` is not
    empty, the plugin changes nothing in a namespace without one of them. `labels` are the node labels of the platforms
    that always enable the plugin.
    """

    name: str
    change: Callable[[JsonObject, Snapshot, Mapping[str, str]], JsonObject]
    annotations: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def runs(self, snapshot: Snapshot) -> bool:
        """Return whether the API server of `snapshot` is known or assumed to run the plugin."""
        return self.name in snapshot.plugins or any(snapshot.labels.values(each) for each in self.labels)


def changing_plugins(pod: JsonObject, namespace: str, snapshot: Snapshot) -> list[OptionalPlugin]:
    """Return the plugins that would change or reject `pod` in `namespace`, in the order in which they run."""
    annotations = snapshot.namespace_annotations(namespace)
    return [each for each in _PLUGINS if _would_change(each, pod, snapshot, annotations)]


def _would_change(plugin: OptionalPlugin, pod: JsonObject, snapshot: Snapshot, annotations: Mapping[str, str]) -> bool:
    if plugin.annotations and annotations.keys().isdisjoint(plugin.annotations):
        return False
    try:
        return plugin.change(pod, snapshot, annotations) is not pod
    except ValueError:
        return True


def alternatives(doubts: Sequence[str], snapshot: Snapshot) -> Iterator[tuple[str, Snapshot]]:
    """Yield names of plugins with a snapshot whose API server runs them: each one of `doubts`, then all of them."""
    for names in dict.fromkeys((*((each,) for each in doubts), (*doubts,))):
        if names:
            yield " and ".join(names), replace(snapshot, plugins=frozenset(names))


def in_doubt(verdict: str, other: str, plugins: str, namespace: str) -> str:
    """Return the message for pods with `verdict` as written and with `other` if the API server runs `plugins`."""
    keys = [key for each in _PLUGINS if each.name in plugins.split(" and ") for key in each.annotations]
    read = f" (annotation {' or '.join(keys)} of the namespace {namespace})" if keys else ""
    return f"{verdict} as written, {other} if the API server runs {plugins}{read}"


def doubtful(placement: Placement, other: str, plugins: str, namespace: str) -> Placement:
    """Return `placement` as Unknown, because the verdict would be `other` if the API server runs `plugins`."""
    text = in_doubt(placement.verdict, other, plugins, namespace)
    if placement.verdict != "Feasible":
        text = f"{text}: {placement.message}"
    return replace(placement, verdict="Unknown", node=None, message=text, scores={})


def _with_selector(annotation: str) -> Callable[[JsonObject, Snapshot, Mapping[str, str]], JsonObject]:
    def change(pod: JsonObject, _: Snapshot, annotations: Mapping[str, str]) -> JsonObject:
        own, wanted = pod["spec"].get("nodeSelector") or {}, _labels(annotations.get(annotation, ""))
        if any(own.get(key, value) != value for key, value in wanted.items()):
            raise ValueError(_CONFLICT)
        if wanted.items() <= own.items():
            return pod
        return {**pod, "spec": {**pod["spec"], "nodeSelector": {**wanted, **own}}}

    return change


def _labels(text: str) -> dict[str, str]:
    """Source: k8s.io/apimachinery/pkg/labels/labels.go, ConvertSelectorToLabelsMap."""
    found = {}
    for each in text.split(",") if text else ():
        key, *values = each.split("=")
        if len(values) != 1:
            raise ValueError(f"invalid selector: {each}")
        found[key.strip()] = values[0].strip()
    return found


def _restricted(pod: JsonObject, _: Snapshot, annotations: Mapping[str, str]) -> JsonObject:
    added, allowed = (_tolerations(annotations.get(key, "")) for key in (_DEFAULT_TOLERATIONS, _ALLOWED_TOLERATIONS))
    pod = _tolerating(pod, added)
    own = pod["spec"].get("tolerations") or ()
    if allowed and not all(_is_covered(each, allowed) for each in own):
        raise ValueError("pod tolerations (possibly merged with namespace default tolerations) conflict with its list")
    return pod


def _tolerations(text: str) -> list[dict[str, Any]]:
    # Deeper nesting than any toleration has is an error of this parser, not of the stack.
    found = orjson.loads(text) if text else []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("the tolerations of the namespace are no list of tolerations")
    return found


def _tolerating_resources(pod: JsonObject, snapshot: Snapshot, _: Mapping[str, str]) -> JsonObject:
    keys = {each.key for each in snapshot.taints.distinct if each.effect == NO_SCHEDULE}
    asked = sorted(each for each in keys & _resources(pod["spec"]) if is_extended_resource(each))
    return _tolerating(pod, [{"key": each, "operator": "Exists", "effect": NO_SCHEDULE} for each in asked])


def _resources(spec: Mapping[str, Any]) -> set[str]:
    lists = [spec.get(part) for part in ("containers", "initContainers")]
    containers = [each for part in lists if isinstance(part, list) for each in part if isinstance(each, dict)]
    found = [each["resources"] for each in containers if isinstance(each.get("resources"), dict)]
    amounts = [each.get(part) for each in found for part in ("requests", "limits")]
    return {name for each in amounts if isinstance(each, dict) for name in each}


def _tolerating(pod: JsonObject, tolerations: Sequence[Mapping[str, Any]]) -> JsonObject:
    own = pod["spec"].get("tolerations") or []
    new = [each for each in tolerations if not _is_covered(each, own)]
    return {**pod, "spec": {**pod["spec"], "tolerations": [*own, *new]}} if new else pod


def _is_covered(toleration: Mapping[str, Any], by: Sequence[Mapping[str, Any]]) -> bool:
    try:
        return any(covers(wide, toleration) for wide in by)
    except TypeError as error:
        raise ValueError("a tolerationSeconds is no number") from error


_SELECTOR, _OF_OPENSHIFT = "scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector"
_PLUGINS = (
    OptionalPlugin("PodNodeSelector", _with_selector(_SELECTOR), (_SELECTOR,)),
    # Source: github.com/openshift/apiserver-library-go, pkg/admission/.../nodeenv/admission.go
    OptionalPlugin(
        "OriginPodNodeEnvironment", _with_selector(_OF_OPENSHIFT), (_OF_OPENSHIFT,), ("node.openshift.io/os_id",)
    ),
    OptionalPlugin("PodTolerationRestriction", _restricted, (_DEFAULT_TOLERATIONS, _ALLOWED_TOLERATIONS)),
    # GKE, EKS (since 1.19) and AKS run it.
    OptionalPlugin(
        "ExtendedResourceToleration",
        _tolerating_resources,
        labels=("cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/cluster"),
    ),
)

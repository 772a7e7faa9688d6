"""Run the admission plugins of the API server before and after the mutating webhooks.

The API server runs LimitRanger, Priority and RuntimeClass on a pod before it calls any webhook. Commands read pods from
manifests and pod templates, on which no API server has run these plugins yet.

Source: k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go, AllOrderedPlugins
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.admission.api_server.limit_ranger import limit_violations, with_default_resources
from webhook.admission.api_server.optional_plugins import OptionalPlugin, changing_plugins
from webhook.admission.api_server.priority import priority_fault
from webhook.admission.api_server.runtime_class import overhead_fault, with_runtime_class
from webhook.cluster.objects.runtime_class import RuntimeClass
from webhook.cluster.optional_kinds import LIMIT_RANGE_KIND, RUNTIME_CLASS_KIND
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput, refused
from webhook.kube.deadline import Expired, never
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.placement.scorer import PodSignature


@dataclass(frozen=True, slots=True)
class Completed:
    """A pod as the API server sends it to webhooks.

    `sources` are the objects from which fields were added, such as `RuntimeClass kata`. `unknown` is the reason why
    some additions of the API server are not known; it is empty if all are known. `doubts` are the optional plugins that
    would change the pod if they are enabled.
    """

    pod: JsonObject
    sources: tuple[str, ...] = ()
    unknown: str = ""
    doubts: tuple[str, ...] = ()


def completed(pod: JsonObject, snapshot: Snapshot, expired: Expired = never) -> Completed:
    """Return `pod`, whose fields have valid types, with the fields that the API server of `snapshot` adds.

    A pod that is already completed is returned unchanged. Unknown LimitRanges count as absent.

    Raises:
        InvalidInput: the API server rejects the pod; contains the API server's message.
    """
    namespace, name = _namespace(pod), pod["spec"].get("runtimeClassName")
    unknown = ""
    if (LIMIT_RANGE_KIND, namespace) in snapshot.left_out.names:
        unknown = f"a LimitRange of the namespace {namespace} cannot be read"
    ranges = snapshot.limit_ranges.get(namespace, ())
    sources: tuple[str, ...] = ()
    if ranges or name:
        # The types of what is read here.
        PodSignature.of(pod, expired)
    for each in ranges:
        pod, has_set = with_default_resources(pod, each)
        sources += (f"LimitRange {each.name}",) if has_set else ()
    changing = changing_plugins(pod, namespace, snapshot)
    running = [each for each in changing if each.runs(snapshot)]
    doubts = () if snapshot.plugins else tuple([each.name for each in changing if each not in running])
    pod = _changed(pod, running, snapshot)
    sources += tuple([each.name for each in running])
    if fault := priority_fault(pod, snapshot):
        raise _refused(pod, fault)
    if not name:
        return Completed(pod, sources, unknown, doubts)
    found = snapshot.runtime_classes.by_name.get(name)
    if found is not None:
        try:
            return Completed(with_runtime_class(pod, found), (*sources, f"RuntimeClass {name}"), unknown, doubts)
        except ValueError as error:
            raise _refused(pod, str(error)) from error
    if snapshot.runtime_classes.are_known and not snapshot.left_out.has(RUNTIME_CLASS_KIND, "", name):
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    remedy = "add runtimeclasses to the cluster file, or grant list and watch of them"
    return Completed(pod, sources, f"the RuntimeClass {name} is not known: {remedy}")


def check_admitted(pod: Mapping[str, Any], snapshot: Snapshot, expired: Expired = never) -> None:
    """Check that the API server of `snapshot` admits `pod`, a completed pod after the webhooks.

    Raises:
        InvalidInput: the API server rejects the pod; contains the API server's message.
    """
    found = limit_violations(pod, snapshot.limit_ranges.get(_namespace(pod), ()), expired)
    if found:
        raise _refused(pod, found[0] if len(found) == 1 else f"[{', '.join(found)}]")
    # The webhook may have set another class.
    if fault := priority_fault(pod, snapshot):
        raise _refused(pod, fault)
    runtime_class = _class_of(pod, snapshot)
    if runtime_class is None and pod["spec"].get("runtimeClassName"):
        return
    if fault := overhead_fault(pod, runtime_class):
        raise _refused(pod, fault)


def _changed(pod: JsonObject, plugins: Sequence[OptionalPlugin], snapshot: Snapshot) -> JsonObject:
    for each in plugins:
        try:
            pod = each.change(pod, snapshot, snapshot.namespace_annotations(_namespace(pod)))
        except ValueError as error:
            raise _refused(pod, str(error)) from error
    return pod


def _class_of(pod: Mapping[str, Any], snapshot: Snapshot) -> RuntimeClass | None:
    return snapshot.runtime_classes.by_name.get(pod["spec"].get("runtimeClassName") or "")


def _namespace(pod: Mapping[str, Any]) -> str:
    return pod["metadata"].get("namespace") or DEFAULT_NAMESPACE


def _refused(pod: Mapping[str, Any], reason: str) -> InvalidInput:
    metadata = pod["metadata"]
    return InvalidInput([refused("pods", metadata.get("name") or metadata.get("generateName") or "Unknown", reason)])

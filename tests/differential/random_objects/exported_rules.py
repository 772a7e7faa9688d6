"""The edits of the exported rules on a pod, as the code of the webhook makes them."""

from collections.abc import Mapping
from copy import copy
from typing import Any

import orjson

from tests.controlplane.client import Object
from tests.support.admission import make_request
from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pipeline import admit
from webhook.admission.verdict import Verdict
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import parse
from webhook.kube.api.json_patch import patched
from webhook.kube.names import KAI_SHARES
from webhook.kube.pod.resources import requested_extended_resources
from webhook.mutation.edits.node_edits import PreferNode
from webhook.mutation.exported.mutations import effective_rules
from webhook.mutation.exported.scheduling import may_undo_packing
from webhook.mutation.exported.variables import NOT_EXPORTED
from webhook.mutation.mutate import Rule, mutate
from webhook.mutation.rules import RULES, node_usage_affinity
from webhook.mutation.workload.card_request import CardRequest
from webhook.mutation.workload.workload import read_workload
from webhook.policy.exempt import pod_shadow_reason
from webhook.policy.policy import Policy
from webhook.policy.products import limits_of
from webhook.policy.spec.workloads import Qos

_USER: Any = {"user": "admin", "groups": ("system:masters", "system:authenticated")}


def by_exported_rules(pod: Object, policy: Policy, namespace: Mapping[str, Any]) -> Object:
    """Return the pod with the edits of the exported rules; `pod` itself if it is left to the webhook."""
    tolerant = _without_denials(policy)
    name, defaults = namespace["name"], namespace.get("annotations") or {}
    own = pod["metadata"].get("annotations") or {}
    verdict = verdict_on(pod, tolerant, namespace)
    resources = requested_extended_resources(pod)
    applied = CardRequest.of(pod, own, resources, policy).applicable_defaults(defaults, policy)
    left: set[str] = {policy.keys.of(each) for each in NOT_EXPORTED} | {*KAI_SHARES}
    left |= {policy.keys.gpu_product} if policy.spec.allowed_products else set()
    is_left = not left.isdisjoint((*own, *applied)) or limits_of(policy.spec, name) is not None
    workload = read_workload(pod, name, defaults, tolerant).workload
    names_product = policy.keys.gpu_product in own or policy.keys.gpu_product in applied
    if workload is not None and names_product and policy.spec.product_affinity:
        is_left |= len(workload.accelerator.product_labels) > 1 and not policy.spec.allowed_products
    if isinstance(verdict, Bypassed | Denied) or workload is None or is_left:
        return pod
    packs = {**dict(applied), **own}.get(policy.keys.bin_packing, "").strip() == "true"
    may_spread = policy.keys.spread in (*own, *applied)
    rules: dict[str, Rule] = {each: RULES[each] for each in effective_rules(policy)}
    if may_spread or (may_undo_packing(policy, workload.type) and not packs):
        del rules["BinPacking"]
    if policy.spec.allowed_products:
        del rules["GpuProduct"]
    if _prefers_pools(pod, policy.node_usage_key):
        edits = node_usage_affinity(workload, policy)
        rules["NodeUsageAffinity"] = lambda *_: [each for each in edits if not isinstance(each, PreferNode)]
    made: Object = patched(pod, mutate(pod, workload, policy, rules).operations)
    return made


def _without_denials(policy: Policy) -> Policy:
    types = {name: each.model_copy(update={"qos": Qos()}) for name, each in policy.spec.workload_types.items()}
    made = copy(policy)
    made.spec = policy.spec.model_copy(update={"invalid_annotations": "warn", "workload_types": types})
    return made


def _prefers_pools(pod: Object, key: str) -> bool:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return any(e["key"] == key for each in terms for e in each["preference"].get("matchExpressions") or ())


def verdict_on(pod: Object, policy: Policy, namespace: Mapping[str, Any]) -> Verdict:
    """Return the verdict on `pod` as it is enforced."""
    if reason := pod_shadow_reason(pod, namespace["name"], policy.spec):
        return Bypassed(reason)
    return admit(make_request(pod, namespace=namespace["name"], **_USER), policy, view_of(namespace))


def view_of(namespace: Mapping[str, Any]) -> ClusterView:
    """Return a view of the namespace alone, without a scorer."""
    namespace = {
        **namespace,
        "labels": {"kubernetes.io/metadata.name": namespace["name"], **namespace.get("labels", {})},
    }
    text = orjson.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    return ClusterView(snapshot_from_documents(parse(text, "cluster")), None)

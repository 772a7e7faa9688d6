"""Exported policies on the real API server: what it stores of a pod, beside what the webhook makes of the same pod.

Many policies are installed at once, each for the pods with a label of its own. A dry run evaluates policies like any
other request, so no pod is stored.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import orjson

from tests.controlplane.build import pinned_minor
from tests.controlplane.client import ApiError, Client, Object
from tests.controlplane.polling import wait_for
from tests.support.admission import make_request
from webhook.admission.cluster_view import ClusterView
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pipeline import admit
from webhook.admission.verdict import Patched, Verdict
from webhook.cluster.file import snapshot_from_documents
from webhook.documents.documents import parse
from webhook.mutation.exported import RELEASES, export
from webhook.policy.exempt import pod_shadow_reason
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

LABEL = "exported-policy"
_RELEASE = min(pinned_minor(), RELEASES[0])
_GROUP = "admissionregistration.k8s.io"
_MUTATING_VERSION = "v1" if _RELEASE >= 36 else "v1beta1"
_MARKER = "exported-marker"
PROBE = "example.com/probe"
# The API server drops it from a pod that it stores, unless a feature gate is on.
_DROPPED = "/spec/schedulingGroup"
_USER: Any = {"user": "admin", "groups": ("system:masters", "system:authenticated")}
_OF_SERVER = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "generation")


@dataclass
class Trial:
    """A pod under a policy of a namespace: what the API server stored or answered, and the verdict of the webhook."""

    stored: Object | None
    message: str
    verdict: Verdict
    expected: Object | None = None
    second: Verdict | None = None
    """The verdict of the webhook on the stored pod: with both installed, it comes second."""

    @property
    def difference(self) -> str:
        """Return how the two differ; empty if they do not."""
        if isinstance(self.verdict, Denied):
            denial = self.verdict.denial.message.replace(";\n", "; ")
            return "" if denial in self.message else f"denied: {denial!r}, the API server: {self.message!r}"
        if self.stored is None:
            return f"{self.verdict.outcome}, the API server: {self.message!r}"
        if isinstance(self.second, Patched) and any(each["path"] != _DROPPED for each in self.second.operations):
            return f"{self.verdict.outcome}, then {self.second.outcome}"
        return "" if self.stored == self.expected else _first_difference(self.expected, self.stored)


def _first_difference(expected: Any, found: Any, path: str = "") -> str:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            if expected.get(key) != found.get(key):
                return _first_difference(expected.get(key), found.get(key), f"{path}.{key}")
    return f"{path}: expected {expected!r}, stored {found!r}"


class ExportedPolicies:
    """Policies that are installed on the API server until `remove` is called."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._installed: list[Object] = []
        self._batches = 0
        self._marker = ""

    def install(self, policies: Mapping[str, PolicySet]) -> None:
        """Install what is exported of the policies, each for the pods with its key as label; wait until they apply."""
        for key, each in policies.items():
            for obj in export(each, _RELEASE).objects:
                self._create(_for_label(obj, key))
        self._wait()

    def remove(self) -> None:
        """Delete all objects."""
        for obj in self._installed:
            self._client.delete(obj["kind"], obj["metadata"]["name"], api_version=obj["apiVersion"])
        self._installed.clear()

    def _create(self, obj: Object) -> None:
        self._client.create(obj)
        self._installed.append(obj)

    def _wait(self) -> None:
        """Wait until policies that are created last apply: then those before them do."""
        self._batches += 1
        self._marker = f"{id(self)}-{self._batches}"
        for obj in _markers(self._marker):
            self._create(obj)
        pod = _marked_pod(self._marker)
        wait_for(lambda: self._is_marked(pod), "the policies do not apply")

    def _is_marked(self, pod: Object, namespace: str = "default", text: str = _MARKER) -> bool:
        try:
            self._client.create(pod, namespace=namespace, dry_run=True)
        except ApiError as error:
            return text in error.message
        return False

    def wait_for_namespace(self, name: str, text: str) -> None:
        """Wait until policies, which must be installed, see the annotation PROBE with the value `text`."""
        pod = _marked_pod(self._marker)
        wait_for(lambda: self._is_marked(pod, name, f"{PROBE}={text};"), f"policies do not see namespace {name}")

    def prepared(self, pod: Object, namespace: str) -> Object:
        """Return `pod` as the API server completes it before policies apply.

        Raises:
            ApiError: it is not valid.
        """
        made = self._client.create(_without(pod), namespace=namespace, dry_run=True).object
        made.pop("status", None)
        return made

    def trial(
        self, prepared: Object, key: str, policy: Policy, namespace: Mapping[str, Any], client: Client | None = None
    ) -> Trial:
        """Return what becomes of the `prepared` pod with the label `key` in a namespace that has this metadata."""
        pod = deepcopy(prepared)
        pod["metadata"].setdefault("labels", {})[LABEL] = key
        verdict = _verdict(pod, policy, namespace)
        try:
            stored = (client or self._client).create(_without(pod), namespace=namespace["name"], dry_run=True).object
        except ApiError as error:
            return Trial(None, error.message, verdict)
        expected = verdict.pod if isinstance(verdict, Patched) else pod
        assert expected is not None
        trial = Trial(_comparable(stored), "", verdict, _completed(expected, stored))
        trial.second = _verdict(stored, policy, namespace)
        if trial.difference and not isinstance(verdict, Denied):
            # A value of the policy may be empty, and is not stored then.
            trial.expected = _completed(self.prepared(_unlabelled(expected), namespace["name"]), stored, key)
        return trial

    def again(self, stored: Object, namespace: str) -> Object:
        """Return what the API server stores of a pod that it has stored already."""
        return _comparable(self._client.create(_without(stored), namespace=namespace, dry_run=True).object)


def _verdict(pod: Object, policy: Policy, namespace: Mapping[str, Any]) -> Verdict:
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


def _for_label(obj: Object, key: str) -> Object:
    """Return an exported object under a name of its own, and a binding for the pods with the label."""
    made = deepcopy(obj)
    made["metadata"]["name"] += f".{key}"
    if "policyName" in made["spec"]:
        made["spec"]["policyName"] += f".{key}"
        made["spec"]["matchResources"] = {"objectSelector": {"matchLabels": {LABEL: key}}}
    else:
        # An expression that fails must not pass for a pod without injection.
        made["spec"]["failurePolicy"] = "Fail"
    return made


def _markers(value: str) -> Iterable[Object]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    constraints = {"resourceRules": [rule], "objectSelector": {"matchLabels": {_MARKER: value}}}
    patch = f'[JSONPatch{{op: "add", path: "/metadata/labels/{_MARKER}-seen", value: "true"}}]'
    is_new = f"!('{_MARKER}-seen' in object.metadata.labels)"
    probe = f"namespaceObject.metadata.?annotations[?'{PROBE}'].orValue('')"
    message = f"'{_MARKER}: {PROBE}=' + {probe} + ';'"
    name = {"name": f"{_MARKER}-{value}"}
    for kind, spec in (
        (
            "MutatingAdmissionPolicy",
            {
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
            },
        ),
        (
            "ValidatingAdmissionPolicy",
            {"validations": [{"expression": is_new, "messageExpression": message}]},
        ),
    ):
        is_validating = kind.startswith("Validating")
        actions = {"validationActions": ["Deny"]} if is_validating else {}
        version = f"{_GROUP}/{'v1' if is_validating else _MUTATING_VERSION}"
        yield {"apiVersion": version, "kind": kind, "metadata": name, "spec": {"matchConstraints": constraints, **spec}}
        binding = {"policyName": name["name"], **actions}
        yield {"apiVersion": version, "kind": f"{kind}Binding", "metadata": name, "spec": binding}


def _marked_pod(value: str) -> Object:
    containers = [{"name": "main", "image": "nginx"}]
    metadata = {"name": "marker", "labels": {_MARKER: value}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def _without(pod: Object) -> Object:
    metadata = {name: value for name, value in pod["metadata"].items() if name not in _OF_SERVER}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]}


def _unlabelled(pod: Object) -> Object:
    labels = {name: value for name, value in pod["metadata"].get("labels", {}).items() if name != LABEL}
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}}


def _comparable(pod: Object) -> Object:
    made = _without(pod)
    if "generateName" in made["metadata"]:
        made["metadata"].pop("name", None)
    return made


def _completed(expected: Object, stored: Object, key: str = "") -> Object:
    """Return the expected pod with what the API server sets by the PriorityClass."""
    made = deepcopy(_comparable(expected))
    if key:
        made["metadata"].setdefault("labels", {})[LABEL] = key
    for name in ("priority", "preemptionPolicy"):
        if name not in made["spec"] and name in stored["spec"]:
            made["spec"][name] = stored["spec"][name]
    return made

"""Exported policies on the real API server: what it stores of a pod, beside what the rules make of the same pod.

Many policies are installed at once, each for the pods with a label of its own. A dry run evaluates policies like any
other request, so no pod is stored.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.controlplane.build import pinned_minor
from tests.controlplane.client import ApiError, Client, Object
from tests.controlplane.polling import wait_for
from tests.differential.random_objects.exported_rules import by_exported_rules, verdict_on
from webhook.admission.injection import Denied
from webhook.admission.verdict import Verdict
from webhook.kube.api.json_patch import patched
from webhook.kube.pod.taints import covers
from webhook.mutation.exported import RELEASES, export
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

LABEL = "exported-policy"
_RELEASE = min(pinned_minor(), RELEASES[0])
_GROUP = "admissionregistration.k8s.io"
_MUTATING_VERSION = "v1" if _RELEASE >= 36 else "v1beta1"
_MARKER = "exported-marker"
PROBE = "example.com/probe"
_OF_SERVER = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "generation")


@dataclass
class Trial:
    """A pod under a policy of a namespace: what the API server stored or answered, and what the webhook makes of it."""

    stored: Object | None
    message: str
    expected: Object
    """The pod with the edits of the exported rules."""
    alone: Verdict
    """The verdict of the webhook on the pod itself."""
    second: Verdict | None = None
    """The verdict of the webhook on the stored pod: with both installed, it comes second."""
    original: Object = field(default_factory=dict)

    @property
    def difference(self) -> str:
        """Return how the stored pod differs from the expected one, or the verdicts do; empty if nothing does."""
        if self.stored is None:
            return f"expected a pod, the API server: {self.message!r}"
        if self.stored != self.expected:
            return _first_difference(self.expected, self.stored)
        assert self.second is not None
        if isinstance(self.alone, Denied) or isinstance(self.second, Denied):
            same = type(self.alone) is type(self.second)
            return "" if same else f"{self.alone.outcome}, after the exported policy {self.second.outcome}"
        alone, both = self.injected_alone, self.injected_by_both
        return "" if alone == both else f"with both: {_first_difference(alone, both)}"

    @property
    def injected_alone(self) -> Object:
        """Return the pod that the webhook alone makes."""
        return _normalized(self.original, self.alone)

    @property
    def injected_by_both(self) -> Object:
        """Return the pod that the webhook makes of the stored one."""
        assert self.stored is not None
        assert self.second is not None
        return _normalized(self.stored, self.second)


def _normalized(pod: Object, verdict: Verdict) -> Object:
    """Return the pod of the verdict, without tolerations that others cover and without empty values.

    The order of tolerations has no meaning.
    """
    made = deepcopy(_comparable(patched(pod, verdict.operations) if verdict.outcome == "Patched" else pod))
    kept: list[Object] = []
    for toleration in made["spec"].pop("tolerations", None) or ():
        each = {name: value for name, value in toleration.items() if value != ""}
        if not any(covers(other, each) for other in kept):
            kept = [*(other for other in kept if not covers(each, other)), each]
    made["spec"]["tolerations"] = sorted(kept, key=str)
    return made


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

    def trial(self, prepared: Object, key: str, policy: Policy, namespace: Mapping[str, Any]) -> Trial:
        """Return what becomes of the `prepared` pod with the label `key` in a namespace that has this metadata."""
        pod = deepcopy(prepared)
        pod["metadata"].setdefault("labels", {})[LABEL] = key
        expected, alone = _comparable(by_exported_rules(pod, policy, namespace)), verdict_on(pod, policy, namespace)
        try:
            stored = self._client.create(_without(pod), namespace=namespace["name"], dry_run=True).object
        except ApiError as error:
            return Trial(None, error.message, expected, alone)
        trial = Trial(_comparable(stored), "", expected, alone, verdict_on(stored, policy, namespace), _comparable(pod))
        if trial.difference:
            # A value of the policy may be empty, and is not stored then.
            trial.expected = _comparable(self.prepared(expected, namespace["name"]))
        return trial

    def again(self, stored: Object, namespace: str) -> Object:
        """Return what the API server stores of a pod that it has stored already."""
        return _comparable(self._client.create(_without(stored), namespace=namespace, dry_run=True).object)


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


def _comparable(pod: Object) -> Object:
    made = _without(pod)
    if "generateName" in made["metadata"]:
        made["metadata"].pop("name", None)
    return made

"""Admission of one pod, for tests that have no server."""

from typing import Any

from webhook.admission.cluster_view import ClusterView
from webhook.admission.pipeline import admit
from webhook.admission.verdict import Verdict
from webhook.kube.api.admission import AdmissionRequest
from webhook.policy.policy import Policy
from webhook.policy.spec.document import API_VERSION, KIND, PolicyDocument

DOMAIN = "maip.mxsf.io"
TYPE = f"{DOMAIN}/workload-type"
PRODUCT = f"{DOMAIN}/gpu-product"
USAGE = f"{DOMAIN}/node.usage"


def policy_with(**spec: Any) -> Policy:
    """Return a policy whose spec is the default one but for these fields, in camelCase."""
    document = {"apiVersion": API_VERSION, "kind": KIND, "spec": spec}
    return Policy(PolicyDocument.model_validate(document))


def make_request(pod: dict[str, Any] | None, *, namespace: str = "default", **fields: Any) -> AdmissionRequest:
    """Return the request to create `pod`; other fields of AdmissionRequest by keyword."""
    request: dict[str, Any] = {
        "uid": "uid-1",
        "operation": "CREATE",
        "kind": "Pod",
        "resource": "pods",
        "subresource": "",
        "namespace": namespace,
        "name": "",
        "user": "kubernetes-admin",
        "dry_run": False,
        "content": pod,
    }
    return AdmissionRequest(**(request | fields))


def admit_pod(
    pod: dict[str, Any], policy: Policy | None = None, cluster: ClusterView | None = None, *, namespace: str = "default"
) -> Verdict:
    """Return the verdict on the creation of `pod`."""
    return admit(make_request(pod, namespace=namespace), policy or policy_with(), cluster)

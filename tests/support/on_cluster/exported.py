"""The exported policy on a real API server: the replicas that keep it in step, and what they have written."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.controlplane.client import Client
from tests.support.servers.live import until
from tests.support.servers.server import connections_gone, policies_of
from webhook.documents.documents import JsonObject
from webhook.kube.api.admission_policy import EXPORT_LEASE, EXPORT_OWNER, MANAGER, PLURALS, ObjectId
from webhook.kube.names import MANAGED_BY_LABEL
from webhook.mutation.exported import Exported
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_set import PolicyOrSet, PolicySet
from webhook.runtime.metrics import Metrics
from webhook.serving.exported.exported_policy import Export, ExportedPolicy, ExportOptions
from webhook.watch.api_server import ClientConfig, Connect
from webhook.watch.lease import LeaseOptions

ADMISSION = "admissionregistration.k8s.io/v1"
NAME = "placement-webhook.default"


def exported(policies: PolicySet, *_: object) -> Exported:
    """Return a policy that writes the revision to Pods; nothing in shadow mode."""
    if policies.spec.mode == "shadow":
        return Exported([], [], [])
    revision = policies.default.identity
    labels = {MANAGED_BY_LABEL: MANAGER}
    metadata = {"name": NAME, "labels": labels, "annotations": {"maip.mxsf.io/exported": revision}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    expression = f'[JSONPatch{{op: "add", path: "/metadata/labels", value: {{"by": "{policies.default.revision}"}}}}]'
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [],
        "reinvocationPolicy": "IfNeeded",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    }
    policy = {"kind": "MutatingAdmissionPolicy", "metadata": metadata, "spec": spec}
    binding = {"kind": "MutatingAdmissionPolicyBinding", "metadata": metadata, "spec": {"policyName": NAME}}
    return Exported([{"apiVersion": ADMISSION, **each} for each in (binding, policy)], [], [])


class Replica:
    """A replica that exports its policies with the rights of `kubeconfig`, and its metric."""

    def __init__(
        self,
        kubeconfig: Path,
        namespace: str,
        export: Export,
        *,
        name: str = "replica-a",
        owner: str = EXPORT_OWNER,
        policy: PolicyOrSet | None = None,
        is_known: Callable[[], bool] = lambda: True,
        connect: Connect | None = None,
    ) -> None:
        self.metrics = Metrics()
        self.policies = policies_of(built_in_policy(), self.metrics)
        if policy is not None:
            self.policies.replace(policy)
        # The shortest times that the election takes.
        lease = LeaseOptions(namespace, EXPORT_LEASE, name, 3.0, 2.0, 1.0)
        options = ExportOptions(lease, owner=owner, resync_seconds=5.0)
        connect, on_fault = connect or ClientConfig(kubeconfig).connect, self.metrics.feed_faults.inc
        self.exported = ExportedPolicy(
            connect, self.policies.in_force, is_known, export, options, self.metrics, on_fault
        )
        self.policies.follow(self.exported.policy_changed)

    @property
    def in_step(self) -> float:
        """The metric: NaN if it is not the leader."""
        (sample,) = next(iter(self.metrics.exported_policy_in_step.collect())).samples
        return sample.value

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run until the block ends."""
        task = asyncio.create_task(self.exported.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def run(work: Callable[[], Awaitable[None]]) -> None:
    """Run the asynchronous part of a test."""

    async def to_the_end() -> None:
        await work()
        await connections_gone()

    asyncio.run(to_the_end())


def stored(client: Client) -> dict[ObjectId, JsonObject]:
    """Return the admission policies and bindings of the cluster."""
    found = (each for kind in PLURALS for each in client.list(kind, api_version=ADMISSION))
    return {ObjectId.of(each): each for each in found}


async def settled(client: Client, names: set[str]) -> dict[ObjectId, JsonObject]:
    """Return the objects once they are those of these names."""
    await until(lambda: {str(each) for each in stored(client)} == names)
    return stored(client)

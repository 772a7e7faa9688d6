"""Priority classes of workload types on the real API server, whose plugin runs before the webhook and after it."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.acceptance.conftest import Webhook
from tests.acceptance.placing.pools import training_pod
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import policy_with
from webhook.policy.policy import Policy

_GROUP = "scheduling.k8s.io/v1"
_FIELDS = ("priorityClassName", "priority", "preemptionPolicy")


@contextmanager
def priority_class(cluster: Cluster, value: int, **fields: Any) -> Iterator[str]:
    """A PriorityClass that the API server knows, until the block ends."""
    name = f"class-{uuid.uuid4().hex[:8]}"
    content = {"apiVersion": _GROUP, "kind": "PriorityClass", "metadata": {"name": name}, "value": value, **fields}
    cluster.client.create(content)
    try:
        yield name
    finally:
        cluster.client.delete("PriorityClass", name, api_version=_GROUP)


def policy_of(name: str, **spec: Any) -> Policy:
    usage = {"allow": ["training"]}
    return policy_with(workloadTypes={"training": {"nodeUsage": usage, "priorityClassName": name}}, **spec)


def stored(cluster: Cluster, **spec: Any) -> list[Any]:
    """The priority fields of a training pod with `spec`, as the API server stores them, or why it is denied."""
    try:
        pod = cluster.create(training_pod("worker").spec(**spec), dry_run=True).object
    except ApiError as error:
        return [error.message]
    return [pod["spec"].get(name) for name in _FIELDS]


def test_the_api_server_resolves_the_class_of_the_type(cluster: Cluster, webhook: Webhook) -> None:
    with priority_class(cluster, 1000, preemptionPolicy="Never") as high, priority_class(cluster, 5) as mine:
        webhook.world.policy = policy_of(high)

        wait_for(lambda: stored(cluster) == [high, 1000, "Never"], "the class of the type")
        own = [mine, 5, "PreemptLowerPriority"]
        wait_for(lambda: stored(cluster, priorityClassName=mine) == own, "the user's own class")


def test_the_default_class_of_the_cluster_is_replaced_if_the_policy_names_it(
    cluster: Cluster, webhook: Webhook
) -> None:
    with (
        priority_class(cluster, 1000) as high,
        priority_class(cluster, 10, globalDefault=True, preemptionPolicy="Never") as default,
    ):
        webhook.world.policy = policy_of(high)
        wait_for(lambda: stored(cluster) == [default, 10, "Never"], "the default class")

        webhook.world.policy = policy_of(high, defaultPriorityClass=default)

        assert stored(cluster) == [high, 1000, "PreemptLowerPriority"]

    webhook.world.policy = policy_with()
    wait_for(lambda: stored(cluster) == [None, 0, "PreemptLowerPriority"], "the end of the default class")


def test_a_class_that_does_not_exist_is_warned_of_and_denied(cluster: Cluster, webhook: Webhook) -> None:
    webhook.world.policy = policy_of("absent")
    webhook.look_at(cluster, "priorityclasses")

    (denied,) = stored(cluster)

    assert "no PriorityClass with name absent was found" in denied

    warnings = webhook.world.records[-1].warnings
    assert [each for each in warnings if each.startswith("PriorityClass")] == [
        "PriorityClass absent does not exist: the API server denies this pod; create it, or name another class"
    ]

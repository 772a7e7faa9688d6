"""Pods of hostile users do not delay the injection of other pods: a short form of `make abuse`."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle

from tests.acceptance.conftest import Webhook
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN, TYPE
from tests.support.attacks import WORST, attack_pod
from tests.support.objects.builders import make_pod
from tests.support.objects.clusters import cluster_documents
from webhook.admission.cluster_view import ClusterView as View
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.placement.scheduler import Scheduler

_ATTACKERS = 4
_VICTIMS = 30
_MANIFEST = {"failurePolicy": "Ignore", "timeoutSeconds": 5}


@contextmanager
def attacked(cluster: Cluster) -> Iterator[list[str]]:
    """Users with dry runs of the worst pods, one after the other, until the block ends; what they are answered."""
    ends, answers = threading.Event(), list[str]()
    pods = [attack_pod("attack", spec()) for name, spec in WORST.items() if "MiB" not in name]

    def attack(number: int) -> None:
        mallory = cluster.client.impersonating(f"mallory-{number}", ["system:masters"])
        for pod in cycle(pods[number:] + pods[:number]):
            if ends.is_set():
                return
            try:
                mallory.create(pod, namespace=cluster.namespace, dry_run=True)
                answers.append("201")
            except ApiError as error:
                answers.append(str(error.code))

    with ThreadPoolExecutor(_ATTACKERS) as pool:
        running = [pool.submit(attack, number) for number in range(_ATTACKERS)]
        try:
            yield answers
        finally:
            ends.set()
            for each in running:
                each.result()


def test_nobody_elses_pod_is_stored_without_injection(cluster: Cluster, webhook: Webhook) -> None:
    webhook.world.cluster = View(snapshot_from_documents(cluster_documents(500, 2)), Scheduler(suggestions=1))
    # In place of the fixture's registration, which fails closed: here a call that is late must show.
    cluster.register_webhook(webhook.server.url, webhook.ca_pem, configuration="ignoring", **_MANIFEST)
    cluster.client.delete(
        "MutatingWebhookConfiguration", "placement-webhook", api_version="admissionregistration.k8s.io/v1"
    )
    cluster.settle_webhooks()
    jane = cluster.client.impersonating("jane", ["system:masters"])

    with attacked(cluster) as answers:
        made = [
            jane.create(make_pod(f"victim-{number}").annotate(TYPE, "training").obj(), namespace=cluster.namespace)
            for number in range(_VICTIMS)
        ]

    injected = [f"{DOMAIN}/placement-policy" in each.object["metadata"]["annotations"] for each in made]
    assert injected == [True] * _VICTIMS
    assert len(answers) >= _ATTACKERS

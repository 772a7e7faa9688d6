"""The chart on a real node: installed, upgraded, rolled back and removed."""

import os
from collections.abc import Iterator

import pytest

from tests.controlplane.polling import Stopwatch
from tests.deploy.helm import build
from tests.node.installation import CERTS_NAMESPACE, CONFIGURATION, NAMESPACE, Installation, pod
from tests.node.running.node import Node
from tests.node.shell import Shell

ADMISSION = "admissionregistration.k8s.io/v1"


@pytest.fixture
def with_helm(real_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The node, without the webhook, and helm in the shell."""
    folder = tmp_path_factory.mktemp("chart") / "project"
    with real_node.network():
        yield Installation(real_node, Shell(real_node, folder, {"helm": build(os.environ, lambda _: None)}))


def failure_policy(installed: Installation) -> str:
    """Return the failurePolicy of the calls for pods; that for workload objects is always Ignore."""
    webhooks = installed.client.get("MutatingWebhookConfiguration", CONFIGURATION, api_version=ADMISSION)["webhooks"]
    (found,) = [each["failurePolicy"] for each in webhooks if each["name"].startswith("pods.")]
    return str(found)


def test_the_chart_is_installed_upgraded_rolled_back_and_removed(with_helm: Installation) -> None:
    shell = with_helm.shell
    (shell.folder / "values.yaml").write_text("image: {repository: placement-webhook}\nscheduler: default-scheduler\n")
    # `helm install` makes a plain namespace; the pods fulfil the standard that the page names.
    shell(f"kubectl create namespace {NAMESPACE}")
    shell(f"kubectl label namespace {NAMESPACE} pod-security.kubernetes.io/enforce=restricted")
    began = Stopwatch()
    shell.run_block("docs/helm.md", "Helm chart")
    with_helm.wait_for_rollout(began, NAMESPACE, CERTS_NAMESPACE)
    with_helm.assert_pod_security()
    with with_helm.team(), with_helm.pool():
        with_helm.assert_works()
    assert failure_policy(with_helm) == "Ignore"
    shell.run_block("docs/helm.md", "Upgrade")
    assert failure_policy(with_helm) == "Fail"
    shell(f"helm rollback {NAMESPACE} --namespace {NAMESPACE} --wait")
    assert failure_policy(with_helm) == "Ignore"
    with_helm.wait_for_rollout(Stopwatch(), NAMESPACE)
    with with_helm.team(), with_helm.pool():
        with_helm.create(pod("again"))
        with_helm.wait_running("again")
    with_helm.assert_no_call_is_denied()
    shell.run_block("docs/helm.md", "Removal")
    shell(f"kubectl delete namespace {NAMESPACE} {CERTS_NAMESPACE} --ignore-not-found")
    with_helm.wait_removed()

"""The manifests for Prometheus and Grafana on the real API server, and what they select."""

import json
import re

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.support.objects.manifests import DEPLOY, container_of, pod_template, read_one

NAMESPACE = "placement-webhook"


@pytest.mark.usefixtures("operator_kinds")
def test_manifests_are_accepted(cluster: Cluster) -> None:
    kubectl = cluster.control_plane.kubectl
    text = kubectl("kustomize", str(DEPLOY / "monitoring")).stdout
    objects = list(yaml.load_all(text, yaml.CSafeLoader))
    cluster.make_namespace(NAMESPACE)

    done = kubectl("apply", "--server-side", "--validate=strict", "-f", "-", stdin=text)

    assert done.stderr == ""
    assert len(re.findall(r"serverside-applied$", done.stdout, re.MULTILINE)) == len(objects)
    assert sorted(each["kind"] for each in objects) == [
        "ConfigMap",
        "PrometheusRule",
        "Service",
        "ServiceMonitor",
    ]
    for each in objects:
        assert each["metadata"]["namespace"] == NAMESPACE
        assert each["metadata"]["labels"]["app.kubernetes.io/name"] == "placement-webhook"
    (dashboard,) = [each for each in objects if each["kind"] == "ConfigMap"]
    assert json.loads(dashboard["data"]["dashboard.json"])["uid"] == "placement-webhook"
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"


METRICS = [read_one(f"{path}-service.yaml") for path in ("monitoring/metrics", "overlays/self-managed/certs-metrics")]
SERVICES = {each["metadata"]["labels"]["job"]: each for each in METRICS}
DEPLOYMENTS = {
    "placement-webhook": read_one("base/deployment.yaml"),
    "placement-webhook-certs": read_one("overlays/self-managed/certs-controller.yaml"),
}


@pytest.mark.parametrize("job", DEPLOYMENTS)
def test_prometheus_finds_the_admin_port_of_each_pod(job: str) -> None:
    service, deployment, monitor = SERVICES[job], DEPLOYMENTS[job], read_one("monitoring/servicemonitor.yaml")
    (port,) = service["spec"]["ports"]

    assert monitor["spec"]["jobLabel"] == "job"
    namespace = deployment["metadata"].get("namespace", NAMESPACE)
    assert service["metadata"].get("namespace", NAMESPACE) == namespace
    assert namespace in monitor["spec"]["namespaceSelector"]["matchNames"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [each["port"] for each in monitor["spec"]["endpoints"]] == [port["name"]]
    assert service["spec"]["selector"].items() <= pod_template(deployment)["metadata"]["labels"].items()
    assert port["targetPort"] in [each["name"] for each in container_of(deployment)["ports"]]


def test_api_servers_do_not_call_the_services_of_the_metrics() -> None:
    webhook = read_one("base/service.yaml")["metadata"]["name"]

    assert webhook not in [each["metadata"]["name"] for each in SERVICES.values()]


def test_alerts_are_about_the_job_of_the_servers() -> None:
    named = set(re.findall(r'job="([^"]*)"', (DEPLOY / "monitoring" / "rules.yaml").read_text()))

    assert named == {"placement-webhook"} <= set(SERVICES)


def test_network_policy_lets_the_namespace_of_prometheus_reach_the_admin_port() -> None:
    rules = read_one("base/networkpolicy.yaml")["spec"]["ingress"]
    (admin,) = [rule for rule in rules if rule["ports"] == [{"port": "admin"}]]

    assert admin["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]

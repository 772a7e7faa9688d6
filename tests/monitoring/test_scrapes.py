"""The alerts and the dashboard on a real Prometheus, with two replicas of `serve` and a real API server under load."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from certs.registration import Target, manifest, with_ca_bundle
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.monitoring.monitored import alerts, dashboard_queries, metrics_in
from tests.monitoring.scraping import Prometheus, scraping, serving, with_grafana_variables
from tests.support.admission import TYPE, USAGE
from tests.support.objects.builders import make_pod
from tests.support.servers.server import write_certificate
from tests.support.tls.certs_controller import Installation, Running, controlling

Programs = dict[str, Path]

PODS = "pods.placement.maip.mxsf.io"
WORKLOADS = "workloads.placement.maip.mxsf.io"
CALLS = "apiserver_admission_webhook_admission_duration_seconds"
GPU, PRODUCT, RACK = "nvidia.com/gpu", "nvidia.com/gpu.product", "topology.kubernetes.io/rack"
VARIABLES = {"__rate_interval": "1m", "job": "placement-webhook", "pool": ".*"}


@pytest.fixture(scope="module")
def own_control_plane(
    control_plane_programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane whose API server has counted no calls for other tests."""
    with ControlPlane(control_plane_programs, tmp_path_factory.mktemp("monitored")) as running:
        yield running


@pytest.fixture(scope="module")
def scraped(
    own_control_plane: ControlPlane, prometheus: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Prometheus after pods were admitted, bound, denied, stored without an answer and refused for want of one."""
    folder = tmp_path_factory.mktemp("monitoring")
    write_certificate(folder)
    cluster = Cluster(own_control_plane)
    for name in "ab":
        labels = {USAGE: "inference", PRODUCT: "NVIDIA-H20", "kubernetes.io/hostname": name, RACK: "r1"}
        cluster.make_node(name, labels=labels, capacity={"cpu": 64, "memory": "1Ti", "pods": 110, GPU: 8})
    # Free cards are counted when a replica is first scraped, and every ten seconds.
    for number in range(3):
        cluster.create(make_pod(f"there-already-{number}").gpu(1).node_name("a"))
    with ExitStack() as stack:
        live = f"--kubeconfig={own_control_plane.kubeconfig}"
        replicas = [stack.enter_context(serving(folder / name, folder, live)) for name in ("one", "two")]
        for each in replicas:
            wait_for(each.is_ready, "the view")
        certs = stack.enter_context(certs_controller(cluster))
        running = stack.enter_context(
            scraping(prometheus["prometheus"], folder / "prometheus", replicas, str(certs.admin), own_control_plane)
        )
        running.wait_value('sum(up{job="placement-webhook"}) + sum(up{job="apiserver"})', 3)
        cluster.client.create(with_ca_bundle(manifest(Target(url=replicas[0].url)), (folder / "ca.crt").read_bytes()))
        cluster.settle_webhooks()
        admit_pods(cluster)
        fail_calls(cluster)
        # Rates need two scrapes of a series. Those of the API server begin with the first call, hence the second one.
        running.wait_value(f'sum({CALLS}_count{{name="{PODS}"}})', 1)
        cluster.create(make_pod("later").annotate(TYPE, "inference").obj())
        running.wait_value(f"sum(rate({CALLS}_count[1m]))", 0.001)
        running.wait_value("count(rate(apiserver_admission_webhook_fail_open_count[1m]))", 1)
        running.wait_value("sum(placement_webhook_predictions_total)", 3)
        running.wait_value("sum(rate(placement_webhook_predictions_total[1m]))", 0.001)
        running.wait_value("sum(placement_webhook_free_cards)", 1)
        yield running


@contextmanager
def certs_controller(cluster: Cluster) -> Iterator[Running]:
    """Run a certs controller, once it keeps the certificates of a Secret, for a configuration that is not there."""
    installation = Installation(cluster, cluster.namespace)
    options = installation.options(configurations=("not-there",))
    with controlling(cluster.control_plane.kubeconfig, options) as running:
        installation.wait_steady()
        running.wait_ready()
        yield running


def admit_pods(cluster: Cluster) -> None:
    """Create pods that are patched and bound, one that is denied, and an object with pods."""
    for number in range(3):
        pod = make_pod(f"served-{number}").requests(cpu=1).annotate(TYPE, "inference").obj()
        cluster.wait_bound(cluster.create(pod).object)
    with pytest.raises(ApiError, match="Unsupported value"):
        cluster.create(make_pod("denied").annotate(TYPE, "no-such-type").obj())
    template = make_pod().annotate(TYPE, "inference").gpu(1).obj()
    template["spec"]["restartPolicy"] = "Never"
    spec = {"template": {"metadata": {"annotations": template["metadata"]["annotations"]}, "spec": template["spec"]}}
    cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": spec})


def fail_calls(cluster: Cluster) -> None:
    """Let the API server call a port at which nothing listens, under the names of our webhooks."""
    nowhere = "https://127.0.0.1:1/mutate"
    cluster.register_webhook(nowhere, "", configuration="zz-open", name=PODS, failurePolicy="Ignore", timeoutSeconds=1)
    cluster.create(make_pod("stored").obj())
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    overrides = {"name": WORKLOADS, "failurePolicy": "Fail", "timeoutSeconds": 1, "rules": rules}
    cluster.register_webhook(nowhere, "", configuration="zz-closed", **overrides)
    with pytest.raises(ApiError, match="failed calling webhook"):
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "refused"}})


def test_every_rule_is_evaluated_without_an_error(scraped: Prometheus) -> None:
    rules = scraped.rules()

    assert [rule["name"] for rule in rules] == [alert["alert"] for alert in alerts()]
    assert [(rule["name"], rule["lastError"]) for rule in rules if rule["health"] != "ok"] == []


def test_the_metrics_of_alerts_and_dashboard_exist(scraped: Prometheus) -> None:
    expressions = [alert["expr"] for alert in alerts()] + [query for _, query in dashboard_queries()]
    named = set().union(*map(metrics_in, expressions))

    assert len(named) > 30
    assert named - scraped.metrics == set()


@pytest.mark.parametrize(
    ("alert", "webhook"),
    [("PlacementWebhookFailingOpen", PODS), ("PlacementWebhookFailingClosed", WORKLOADS)],
)
def test_calls_that_fail_fire_the_alert_of_their_failure_policy(scraped: Prometheus, alert: str, webhook: str) -> None:
    scraped.wait_value(f'count(ALERTS{{alertname="{alert}",alertstate="firing",name="{webhook}"}})', 1)

    assert scraped.query(f'ALERTS{{alertname="{alert}",name!="{webhook}"}}') == []


def test_a_healthy_replica_fires_no_other_alert(scraped: Prometheus) -> None:
    firing = {sample["metric"]["alertname"] for sample in scraped.query('ALERTS{alertstate="firing"}')}

    assert firing - {"PlacementWebhookFailingOpen", "PlacementWebhookFailingClosed"} == set()


def queries_without_data(scraped: Prometheus) -> list[str]:
    """Return the queries of the dashboard that have no sample, or no number; not those of `--export-policy`."""
    empty = []
    for _, query in dashboard_queries():
        if "exported_policy_in_step" in query:
            continue
        samples = scraped.query(with_grafana_variables(query, VARIABLES))
        if all(math.isnan(float(sample["value"][1])) for sample in samples):
            empty.append(query)
    return empty


def test_every_query_of_the_dashboard_has_data(scraped: Prometheus) -> None:
    """A rate has data after two scrapes."""
    wait_for(lambda: not queries_without_data(scraped), lambda: f"data for {queries_without_data(scraped)}")


def test_free_cards_are_those_of_the_cluster(scraped: Prometheus) -> None:
    kind = 'pool="inference",product="NVIDIA-H20"'
    # Three pods of one card each run on one of two nodes of eight. Both replicas know it.
    scraped.wait_value(f"count(placement_webhook_free_cards{{{kind}}} == 13)", 2)

    assert scraped.value(f"sum(max by (free) (placement_webhook_nodes_by_free_cards{{{kind},free!='8'}}))") > 0
    assert scraped.value(f"sum(max by (free) (placement_webhook_nodes_by_free_cards{{{kind}}}))") == 2
    assert 0 < scraped.value(f"max(placement_webhook_unusable_free_cards_share{{{kind}}})") < 0.5

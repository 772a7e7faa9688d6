"""Signs of schedulers, read from the real API server."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.support.objects.batch_objects import definition, volcano_configuration
from tests.support.objects.builders import make_pod
from tests.support.objects.manifests import read
from tests.support.on_cluster.service_account import RBAC, limited_to
from tests.support.servers.fake_api import fake_api, json
from tests.support.servers.live import following_in_thread
from webhook.backends.kai import Kai
from webhook.backends.volcano import Volcano
from webhook.cluster.batch.volcano_configuration import VolcanoConfiguration
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig
from webhook.watch.polling import read_scheduler_evidence

(_SHIPPED,) = [each for each in read("base/rbac.yaml") if each["kind"] == "ClusterRole"]


def read_evidence(kubeconfig: Path) -> SchedulerEvidence:
    async def ask() -> SchedulerEvidence:
        async with ClientConfig(kubeconfig).connect() as server:
            return await read_scheduler_evidence(server)

    return asyncio.run(ask())


def make_lease(name: str, holder: str = "") -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": holder or name},
    }


@pytest.fixture
def volcano_api_group(control_plane: ControlPlane) -> Iterator[None]:
    """The group of Volcano's PodGroup, as its CRD gives it."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    name, group = "podgroups.scheduling.volcano.sh", "scheduling.volcano.sh"
    spec = {
        "group": group,
        "names": {"kind": "PodGroup", "plural": "podgroups"},
        "scope": "Namespaced",
        "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": schema}],
    }
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}}
    control_plane.client.create(crd | {"spec": spec})
    control_plane.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=120s")
    yield
    control_plane.kubectl("delete", "crd", name, "--timeout=120s")


def test_leases_of_all_namespaces_are_read_without_those_of_nodes(cluster: Cluster) -> None:
    cluster.create(make_lease("second-scheduler", "host-1_3f2a"))
    of_node = make_lease("lease-of-a-node")
    of_node["metadata"]["namespace"] = "kube-node-lease"
    cluster.create(of_node)

    evidence = wait_for(
        lambda: (
            found if (found := read_evidence(cluster.control_plane.kubeconfig)).shows("second-scheduler", ()) else None
        ),
        "the Lease",
    )

    assert "host-1_3f2a" in evidence.leases
    assert "lease-of-a-node" not in evidence.leases
    assert {"apps", "coordination.k8s.io"} <= evidence.groups
    assert not evidence.shows("volcano", Volcano.api_groups)
    cluster.client.delete("Lease", "lease-of-a-node", namespace="kube-node-lease", api_version="coordination.k8s.io/v1")


def test_lease_that_is_not_renewed_is_no_sign(cluster: Cluster) -> None:
    for name, age in (("fresh-scheduler", 0), ("old-scheduler", 9)):
        lease = make_lease(name)
        renewed = datetime.now(UTC) - timedelta(minutes=age)
        lease["spec"] |= {"leaseDurationSeconds": 15, "renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}"}
        cluster.create(lease)

    wait_for(lambda: read_evidence(cluster.control_plane.kubeconfig).shows("fresh-scheduler", ()), "the Leases")
    assert not read_evidence(cluster.control_plane.kubeconfig).shows("old-scheduler", ())


@pytest.mark.usefixtures("volcano_api_group")
def test_api_group_of_a_crd_is_a_sign(cluster: Cluster) -> None:
    wait_for(
        lambda: read_evidence(cluster.control_plane.kubeconfig).shows("volcano", Volcano.api_groups), "the API group"
    )
    assert not read_evidence(cluster.control_plane.kubeconfig).shows("kai-scheduler", Kai.api_groups)


def test_live_view_follows_the_signs(cluster: Cluster) -> None:
    cluster.make_node("a")
    with following_in_thread(cluster.control_plane.kubeconfig) as live:
        evidence = wait_for(lambda: live.snapshot().scheduler_evidence, "the first signs")
        assert (evidence.shows("second-scheduler", ()), live.snapshot().has_pod_of("second-scheduler")) == (
            False,
            False,
        )
        cluster.create(make_lease("second-scheduler"))
        cluster.create(make_pod("bound").node_name("a").scheduler("second-scheduler"))
        wait_for(lambda: live.snapshot().has_pod_of("second-scheduler"), "the bound pod")

        def is_shown() -> bool:
            found = live.snapshot().scheduler_evidence
            return found is not None and found.shows("second-scheduler", ())

        wait_for(is_shown, "the Lease")


def test_shipped_role_allows_to_read_the_signs(cluster: Cluster, tmp_path: Path) -> None:
    with limited_to(cluster, tmp_path, _SHIPPED["rules"]) as kubeconfig:
        evidence = wait_for(lambda: read_or_none(kubeconfig), "the right")
        assert "apps" in evidence.groups


@pytest.fixture
def kueue_api_group(control_plane: ControlPlane) -> Iterator[None]:
    """The group of Kueue's LocalQueue, as its CRD gives it."""
    crd = definition("LocalQueue.kueue.x-k8s.io")
    name = crd["metadata"]["name"]
    control_plane.client.create(crd)
    control_plane.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=120s")
    yield
    control_plane.kubectl("delete", "crd", name, "--timeout=120s")


@pytest.mark.usefixtures("kueue_api_group")
def test_shipped_role_allows_to_read_the_configuration_of_kueue_alone(cluster: Cluster, tmp_path: Path) -> None:
    text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nwaitForPodsReady: {timeout: 90s}\n"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"controller_manager_config.yaml": text}}
    namespace = cluster.make_namespace("kueue-system")
    with limited_to(cluster, tmp_path, _SHIPPED["rules"]) as kubeconfig:
        assert wait_for(lambda: read_or_none(kubeconfig), "the right").pods_ready_timeout == ""
        for name in ("kueue-manager-config", "other"):
            cluster.client.create({**config_map, "metadata": {"name": name}}, namespace=namespace)

        assert read_evidence(kubeconfig).pods_ready_timeout == "90s"
        with pytest.raises(ApiServerError, match='configmaps "other" is forbidden'):
            asyncio.run(read_config_map(kubeconfig, "other"))


@pytest.mark.usefixtures("volcano_api_group")
def test_shipped_role_allows_to_read_the_configuration_of_volcano(cluster: Cluster, tmp_path: Path) -> None:
    namespace = cluster.make_namespace("volcano-system")
    with limited_to(cluster, tmp_path, _SHIPPED["rules"]) as kubeconfig:
        assert wait_for(lambda: read_or_none(kubeconfig), "the right").volcano is None
        made = volcano_configuration("actions: allocate\ntiers:\n- plugins:\n  - name: gang\n")
        cluster.client.create(made, namespace=namespace)

        found = wait_for(lambda: read_evidence(kubeconfig).volcano, "the configuration")
        assert found == VolcanoConfiguration(frozenset({"allocate"}), frozenset({"gang"}))


async def read_config_map(kubeconfig: Path, name: str) -> Object:
    async with ClientConfig(kubeconfig).connect() as server:
        return await server.get(f"/api/v1/namespaces/kueue-system/configmaps/{name}", {})


def read_or_none(kubeconfig: Path) -> SchedulerEvidence | None:
    try:
        return read_evidence(kubeconfig)
    except ApiServerError:
        return None


def test_signs_that_are_forbidden_are_not_known_until_they_are_allowed(cluster: Cluster, tmp_path: Path) -> None:
    with limited_to(cluster, tmp_path, _SHIPPED["rules"][:1]) as kubeconfig:
        with pytest.raises(ApiServerError, match=r"leases\.coordination\.k8s\.io is forbidden"):
            read_evidence(kubeconfig)
        with following_in_thread(kubeconfig) as live:
            assert live.snapshot().scheduler_evidence is None
            cluster.client.patch("ClusterRole", "limited", {"rules": _SHIPPED["rules"]}, api_version=RBAC)
            wait_for(lambda: live.snapshot().scheduler_evidence, "the signs")
            cluster.client.patch("ClusterRole", "limited", {"rules": _SHIPPED["rules"][:1]}, api_version=RBAC)
            wait_for(lambda: live.snapshot().scheduler_evidence is None, "signs that are not known")


def test_leases_without_bounds_are_not_read(tmp_path: Path) -> None:
    async def ask() -> None:
        many = json({"items": [make_lease(f"{number:0200}") for number in range(10_000)]})
        async with (
            fake_api("/apis/coordination.k8s.io/v1/leases", many) as api,
            ClientConfig(api.kubeconfig(tmp_path)).connect() as server,
        ):
            await read_scheduler_evidence(server)

    with pytest.raises(ApiServerError, match="the response is larger than 2097152 bytes"):
        asyncio.run(ask())

"""A ResourceQuota of pods with affinity across namespaces: what the API server refuses, the webhook warned of."""

from tests.acceptance.conftest import Webhook
from tests.acceptance.placing.pools import pool_node, training_pod
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import DOMAIN
from tests.support.objects.builders import PodBuilder
from webhook.documents.text import cut

_EVERYWHERE = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname", "namespaceSelector": {}}
_PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": _EVERYWHERE}]}

_WARNING = (
    "quota alone (CrossNamespacePodAffinity) denies this pod: the packing hint selects pods of all namespaces; set "
    'binPacking.namespaces: same in the policy, or maip.mxsf.io/bin-packing: "false"'
)


def limit_pods_across_namespaces(cluster: Cluster, pods: int) -> None:
    """Create a quota of that scope, computed as a controller-manager would, and wait until it is enforced."""
    spec = {"hard": {"pods": str(pods)}, "scopes": ["CrossNamespacePodAffinity"]}
    cluster.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "alone"}, "spec": spec})
    status = {"status": {"hard": spec["hard"], "used": {"pods": "0"}}}
    cluster.client.patch("ResourceQuota", "alone", status, namespace=cluster.namespace, subresource="status")
    if pods == 0:
        probe = training_pod("probe").annotate(f"{DOMAIN}/inject", "disabled").affinity({"podAffinity": _PREFERRED})
        wait_for(lambda: "exceeded quota" in refusal(cluster, probe), "the quota")


def refusal(cluster: Cluster, pod: PodBuilder) -> str:
    try:
        cluster.create(pod, dry_run=True)
    except ApiError as error:
        return error.message
    return ""


def test_user_reads_why_the_quota_denies_a_packed_pod_and_how_to_avoid_it(cluster: Cluster, webhook: Webhook) -> None:
    cluster.make_nodes(pool_node("train-1", "training"))
    limit_pods_across_namespaces(cluster, 0)
    webhook.look_at(cluster, "resourcequotas")
    packed = training_pod("packed")

    denied = refusal(cluster, packed)
    warnings = webhook.world.records[-1].warnings

    assert "exceeded quota: alone, requested: pods=1, used: pods=0, limited: pods=0" in denied
    assert warnings == (_WARNING,)
    assert cut(warnings[0], 256) == warnings[0]
    assert cluster.create(packed.annotate(f"{DOMAIN}/bin-packing", "false"), dry_run=True).warnings == []


def test_quota_with_room_denies_nothing_and_is_not_warned_of(cluster: Cluster, webhook: Webhook) -> None:
    cluster.make_nodes(pool_node("train-1", "training"))
    limit_pods_across_namespaces(cluster, 1)
    webhook.look_at(cluster, "resourcequotas")

    assert cluster.create(training_pod("packed"), dry_run=True).warnings == []

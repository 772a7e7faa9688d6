"""What the profiles of Volcano and KAI share."""

import pytest

from tests.placement.batch_profiles.batch_clusters import sized_node
from tests.support.objects.builders import make_node_object, make_pod, match_expressions
from tests.support.views import made_anew
from webhook.cluster.snapshot import Snapshot
from webhook.placement.batch_profiles.kai import KAI
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.profiles.profile import DEFAULT, Profile
from webhook.placement.scheduler import Scheduler


@pytest.mark.parametrize("profile", [VOLCANO, KAI], ids=lambda profile: str(profile.name))
def test_a_selector_that_requires_no_label_selects_every_namespace_before_1_37(profile: Profile) -> None:
    """Volcano 1.15.1 and KAI 0.12.0 are linked with these releases, whatever the release of the cluster is."""
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": match_expressions(("team", "NotIn", ["blue"])),
        "topologyKey": "zone",
    }
    pod = (
        make_pod()
        .affinity({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
        .requests(cpu="1")
    )
    blue = {"name": "blue", "labels": {"team": "blue"}}
    view = made_anew(
        [
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": each} for each in (blue, {"name": "default"})),
            sized_node("a", labels={"zone": "z"}),
            make_pod("db").namespace("blue").label("app", "db").node_name("a").status(phase="Running").obj(),
        ]
    )
    assert Scheduler(profile).place(pod.obj(), view).verdict == "Feasible"
    assert Scheduler(DEFAULT).place(pod.obj(), view).message == (
        "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."
    )


def test_empty_cluster_scores_nothing() -> None:
    assert Scheduler(VOLCANO).place(make_pod().obj(), Snapshot.of(())).verdict == "Infeasible"
    assert Scheduler(KAI).place(make_pod().obj(), Snapshot.of(())).verdict == "Infeasible"


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        *(
            (key, key)
            for key in (
                "kueue.x-k8s.io/podset-required-topology",
                "kueue.x-k8s.io/podset-slice-required-topology",
                "kai.scheduler/topology-required-placement",
            )
        ),
        ("volcano.sh/network-topology-mode", "network-topology-aware"),
        ("volcano.sh/network-topology-highest-tier", "network-topology-aware"),
    ],
)
def test_topology_that_another_component_requires_leaves_a_pod_that_fits_unknown(key: str, shown: str) -> None:
    view = made_anew([make_node_object("a", capacity={"cpu": "2"})])
    fitting, other = (make_pod().requests(cpu=amount).annotate(key, "rack").obj() for amount in (1, 3))
    preferred = make_pod().requests(cpu=1).annotate("kueue.x-k8s.io/podset-preferred-topology", "rack").obj()

    for profile in (KAI, VOLCANO):
        placement = Scheduler(profile).place(fitting, view)
        assert (placement.verdict, shown in placement.message) == ("Unknown", True)
        assert Scheduler(profile).place(other, view).verdict == "Infeasible"
        assert Scheduler(profile).place(preferred, view).verdict == "Feasible"

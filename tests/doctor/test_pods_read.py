"""Missed pods among the pods of a cluster."""

from typing import Any

from placement_doctor.check import MOST_NAMED
from placement_doctor.kept import PodsRead
from tests.doctor.healthy import POLICY, configuration
from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.admission.missed import Scope
from webhook.admission.registered_selection import Selection
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

TYPE = "maip.mxsf.io/workload-type"


def read(
    *pods: PodBuilder | dict[str, Any],
    defaults: dict[str, str] | None = None,
    policy: Policy = POLICY,
    others: tuple[Policy, ...] = (),
) -> PodsRead:
    """Return what is kept of these pods, in namespaces with these defaults."""
    scopes = {name: Scope(defaults or {}, {}) for name in ("default", "kube-system")}
    made = PodsRead(PolicySet(policy, others), Selection.of(configuration()["webhooks"][0]), scopes)
    for pod in pods:
        made.add(pod.obj() if isinstance(pod, PodBuilder) else pod)
    return made


def test_a_pod_without_marks_was_missed_before_and_after_it_is_bound() -> None:
    pending, bound = (make_pod(name).annotate(TYPE, "training").gpu(1) for name in ("pending", "bound"))
    assert [each.name for each in read(pending, bound.node_name("node-1")).missed] == ["pending", "bound"]


def test_a_pod_is_judged_by_the_policy_of_its_namespace() -> None:
    pod = make_pod("trainer").annotate(TYPE, "training").gpu(1)
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}

    assert read(pod, others=(policy_with(mode="shadow", namespaceSelector=selector),)).missed == []
    assert (
        len(read(pod, policy=policy_with(mode="shadow"), others=(policy_with(namespaceSelector=selector),)).missed) == 1
    )


def test_no_selector_by_labels_selects_a_namespace_that_is_not_known() -> None:
    """As in the server: the namespace was created after the namespaces were read."""
    pod = make_pod("trainer").annotate(TYPE, "training").gpu(1).namespace("new")
    selector = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    shadow, enforced = policy_with(mode="shadow", namespaceSelector=selector), policy_with(namespaceSelector=selector)

    assert read(pod, others=(shadow,)).missed_count == 1
    assert read(pod, policy=policy_with(mode="shadow"), others=(enforced,)).missed_count == 0


def test_pods_that_the_webhook_leaves_alone_were_not_missed() -> None:
    marked = make_pod("marked").annotate(TYPE, "training").annotate(POLICY.policy_annotation, POLICY.identity)
    of_daemon = make_pod("daemon").annotate(TYPE, "training").owner("DaemonSet", "d", uid="u")
    system = make_pod("system").annotate(TYPE, "training").namespace("kube-system")
    opted_out = make_pod("out").annotate(TYPE, "training").annotate("maip.mxsf.io/inject", "disabled")
    assert read(make_pod("plain"), marked, of_daemon, system, opted_out).missed == []


def test_no_pod_is_missed_where_the_policy_is_not_enforced() -> None:
    pod = make_pod("p").annotate(TYPE, "training")
    assert read(pod, policy=policy_with(mode="shadow")).missed == []
    some = read(
        *(make_pod(f"p-{n}").annotate(TYPE, "training") for n in range(100)), policy=policy_with(canaryPercent=50)
    )
    assert 0 < some.missed_count < 100


def test_the_default_of_a_namespace_counts() -> None:
    assert read(make_pod("plain").gpu(1), defaults={TYPE: "training"}).missed_count == 1


def test_the_first_are_kept_and_the_others_counted() -> None:
    found = read(*(make_pod(f"p-{n}").annotate(TYPE, "training") for n in range(MOST_NAMED + 5)))
    assert (len(found.missed), found.missed_count) == (MOST_NAMED, MOST_NAMED + 5)


def test_schedulers_are_those_of_bound_pods_with_their_newest_binding() -> None:
    scheduled = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-05-01T08:00:00Z"}]
    newer = [{**scheduled[0], "lastTransitionTime": "2026-05-01T09:00:00Z"}]
    mirror = make_pod("m").scheduler("mine").node_name("n").annotate("kubernetes.io/config.mirror", "x").obj()
    pods: list[PodBuilder | dict[str, Any]] = [
        {**make_pod("a").scheduler("volcano").node_name("n").obj(), "status": {"conditions": newer}},
        {**make_pod("a").scheduler("volcano").node_name("n").obj(), "status": {"conditions": scheduled}},
        {**mirror, "status": {"conditions": newer}},
        make_pod("b").scheduler("pending-only"),
        {},
        {"spec": 1},
    ]
    assert read(*pods).bound_schedulers == {"volcano": "2026-05-01T09:00:00Z", "mine": ""}


def test_pods_of_a_network_are_kept_by_namespace() -> None:
    operator = make_pod("tigera-operator-5d").namespace("tigera-operator").spec(hostNetwork=True)
    second = make_pod("tigera-operator-6f").namespace("tigera-operator").spec(hostNetwork=True)
    exporter = make_pod("node-exporter-x").namespace("monitoring").spec(hostNetwork=True)
    ui = make_pod("calico-ui").namespace("web")
    assert read(operator, second, exporter, ui).networks == {"tigera-operator": "tigera-operator-5d"}

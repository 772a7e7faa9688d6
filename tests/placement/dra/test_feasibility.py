"""DeviceClasses and ResourceClaims of a cluster file change a pod's verdict."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.devices import (
    DRIVER,
    allocated,
    claiming,
    constrained,
    exactly,
    first_of,
    make_cards,
    make_counters,
    make_device,
    make_device_class,
    make_part,
    make_resource_claim,
    make_slice,
)
from tests.support.plugins import pod_info
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.dra.devices import NO_DEVICES
from webhook.cluster.dra.resource_claim import ResourceClaim
from webhook.cluster.update import updated
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.placement.dra import feasibility
from webhook.placement.dra.step_budget import StepBudget
from webhook.placement.plugins.dynamic_resources import DynamicResources
from webhook.placement.plugins.node_resources_fit import ScoringStrategy
from webhook.placement.pod.pod_info import PodResourceClaim
from webhook.placement.profiles.node_templates import template_nodes
from webhook.placement.profiles.plugin_registry import PluginArgs
from webhook.placement.profiles.profile import DEFAULT, Enabled, Profile
from webhook.placement.scheduler import Placement, Scheduler
from webhook.policy.spec.schedulers import NodeTemplate

Object = dict[str, Any]

_GPU = make_device_class("gpu.example.com", any_driver=True)
_WRONG = {"name": "card", "exactly": {"deviceClassName": "gpu.exmaple.com"}}
_RIGHT = {"name": "card", "exactly": {"deviceClassName": "gpu.example.com"}}


def _place(pod: PodBuilder, *objects: Object) -> Placement:
    nodes = make_node_object("a"), make_node_object("b", capacity={"example.com/gpu": 2})
    return Scheduler().place(pod.obj(), snapshot_from_documents(Document("c", each) for each in (*nodes, *objects)))


def _claims(**use: str) -> PodBuilder:
    return make_pod().spec(resourceClaims=[{"name": "gpu", **use}])


@pytest.mark.parametrize(
    ("pod", "claim"),
    [
        pytest.param(_claims(resourceClaimName="c"), make_resource_claim("c", _RIGHT, _WRONG), id="claim"),
        pytest.param(
            _claims(resourceClaimTemplateName="c"), make_resource_claim("c", _WRONG, template=True), id="template"
        ),
    ],
)
def test_claim_of_an_unknown_class_is_infeasible(pod: PodBuilder, claim: Object) -> None:
    placement = _place(pod, _GPU, claim)
    assert placement.verdict == "Infeasible"
    assert placement.message == ("0/2 nodes are available: request card: device class gpu.exmaple.com does not exist.")


def test_alternative_of_an_unknown_class_is_named_with_its_request() -> None:
    either = {"name": "card", "firstAvailable": [{"name": "new", "deviceClassName": "none"}]}
    placement = _place(_claims(resourceClaimName="c"), _GPU, make_resource_claim("c", either))
    assert "request card/new: device class none does not exist" in placement.message


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([_GPU, make_resource_claim("c", _RIGHT)], id="a class that there is"),
        pytest.param([_GPU], id="no such claim known"),
    ],
)
def test_whether_devices_are_there_is_not_known(objects: list[Object]) -> None:
    placement = _place(_claims(resourceClaimName="c"), *objects)
    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("DynamicResources",))


def test_classes_that_a_live_view_may_not_list_are_not_known() -> None:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a"), make_node_object("b")])
    cache.replace("ResourceClaim", [make_resource_claim("c", _WRONG)])
    cache.mark_known("ResourceClaim")
    cache.mark_known("Service")
    placement = Scheduler().place(_claims(resourceClaimName="c").obj(), cache.snapshot())
    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("DynamicResources",))
    cache.mark_known("DeviceClass")
    assert Scheduler().place(_claims(resourceClaimName="c").obj(), cache.snapshot()).verdict == "Infeasible"


def test_resource_behind_which_a_class_stands_is_not_missing() -> None:
    pod = make_pod().gpu(3, "example.com/gpu")
    assert _place(pod).verdict == "Infeasible"
    assert _place(pod).deny_exemption == ""
    backed = _place(pod, make_device_class("gpu", extended_resource="example.com/gpu", any_driver=True))
    assert (backed.verdict, backed.feasible, backed.unmodelled) == ("Unknown", 1, ("DynamicResources",))


def test_resource_of_a_class_that_there_is_not_is_missing() -> None:
    pod = make_pod().requests(**{"deviceclass.resource.kubernetes.io/card": 1})
    assert _place(pod).verdict == "Unknown"
    assert _place(pod, make_device_class("card", any_driver=True)).verdict == "Unknown"
    missing = _place(pod, _GPU)
    assert missing.verdict == "Infeasible"
    assert missing.message == "0/2 nodes are available: 2 Insufficient deviceclass.resource.kubernetes.io/card."


def test_resource_that_no_node_offers_is_missing_but_for_a_doubt_where_classes_are_not_known() -> None:
    pod = make_pod().gpu(1, "example.com/cards")
    missing = _place(pod)
    assert (missing.verdict, missing.unmodelled) == ("Infeasible", ())
    assert missing.message == "0/2 nodes are available: 2 Insufficient example.com/cards."
    assert missing.deny_exemption == (
        "no node offers example.com/cards, and whether a DeviceClass stands behind it is not known"
    )
    assert _place(pod.node_selector("disk", "fast")).deny_exemption == "", "it would not be taken with it either"
    pod = make_pod().gpu(1, "example.com/cards")
    known = _place(pod, _GPU)
    assert (known.verdict, known.message, known.deny_exemption) == (missing.verdict, missing.message, "")


_CLASS = make_device_class()
_CARDS = make_slice("a", *make_cards(2, model="H100"))
_OTHER = allocated(make_resource_claim("other", exactly()), "b", "card-0")
_MIG = make_part("part", {"memory": "1"})


def _place_claim(claim: Object, *objects: Object, template: bool = False) -> Placement:
    pod = make_pod().spec(resourceClaims=claiming(claim["metadata"]["name"], template=template))
    return _place(pod, claim, *objects)


def test_without_slices_it_is_not_known_which_devices_there_are() -> None:
    placement = _place_claim(make_resource_claim("own", exactly("cards", 9)), _CLASS, _OTHER)
    assert (placement.verdict, placement.feasible, placement.unmodelled) == ("Unknown", 2, ("DynamicResources",))


@pytest.mark.parametrize("others", [[_CARDS, _OTHER], []], ids=["all kinds", "claims alone"])
def test_where_claims_are_listed_a_class_that_is_not_does_not_exist(others: list[Object]) -> None:
    placement = _place_claim(make_resource_claim("own", exactly("cards", 9)), *others)
    assert (placement.verdict, placement.feasible) == ("Infeasible", 0)
    assert placement.message == "0/2 nodes are available: request cards: device class gpu does not exist."


def test_without_claims_it_is_not_known_which_devices_are_taken() -> None:
    cache = ClusterCache()
    cache.replace("Node", [make_node_object("a"), make_node_object("b")])
    template = make_resource_claim("own", exactly("cards", 2), template=True)
    too_many = make_resource_claim("many", exactly("cards", 3), template=True)
    known = {"ResourceClaimTemplate": [template, too_many], "DeviceClass": [_CLASS], "ResourceSlice": [_CARDS]}
    for kind, objects in known.items():
        cache.replace(kind, objects)
        cache.mark_known(kind)
    cache.mark_known("Service")
    pod = make_pod().spec(resourceClaims=claiming("own", template=True))
    placement = Scheduler().place(pod.obj(), cache.snapshot())
    assert (placement.verdict, placement.feasible, placement.unmodelled) == ("Unknown", 1, ("DynamicResources",))
    hopeless = make_pod().spec(resourceClaims=claiming("many", template=True))
    assert Scheduler().place(hopeless.obj(), cache.snapshot()).verdict == "Infeasible"
    cache.mark_known("ResourceClaim")
    placement = Scheduler().place(pod.obj(), cache.snapshot())
    assert (placement.verdict, placement.node, placement.unmodelled) == ("Feasible", "a", ())


def test_a_file_with_classes_and_devices_and_no_claim_is_of_a_cluster_without_claims() -> None:
    template = make_resource_claim("own", exactly("cards", 2), template=True)
    placement = _place_claim(template, _CLASS, _CARDS, template=True)
    assert (placement.verdict, placement.node, placement.unmodelled) == ("Feasible", "a", ())


def test_nodes_that_offer_an_extended_resource_themselves_need_no_devices() -> None:
    device_class = make_device_class(extended_resource="example.com/gpu")
    placement = _place(make_pod().gpu(1, "example.com/gpu").node_selector("kubernetes.io/hostname", "b"), device_class)
    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("DynamicResources",))
    nodes = [make_node_object(name, capacity={"example.com/gpu": 2}) for name in "ab"]
    snapshot = snapshot_from_documents(Document("c", each) for each in (*nodes, device_class))
    placement = Scheduler().place(make_pod().gpu(1, "example.com/gpu").obj(), snapshot)
    assert (placement.verdict, placement.unmodelled) == ("Feasible", ())


@pytest.mark.parametrize(
    ("claim", "objects"),
    [
        pytest.param(make_resource_claim("own", exactly("c", 33)), [_CARDS], id="more devices than a claim can have"),
        pytest.param(
            make_resource_claim("own", exactly("c", 1, "device.driver.size() + 1 == 2")), [_CARDS], id="selector"
        ),
        pytest.param(make_resource_claim("own", {"name": "c"}), [_CARDS], id="request of an unknown kind"),
        pytest.param(
            make_resource_claim("own", {"name": "c", "exactly": {"deviceClassName": "gpu", "allocationMode": "Some"}}),
            [_CARDS],
            id="number of devices of an unknown kind",
        ),
        pytest.param(
            make_resource_claim("own", exactly())
            | {"spec": {"devices": {"requests": [exactly()], "constraints": [{}]}}},
            [_CARDS],
            id="constraint",
        ),
        pytest.param(
            make_resource_claim("own", exactly()),
            [
                make_slice("a", _MIG, count=2),
                make_counters("a", {"memory": "1"}, count=2),
                make_slice("b", _MIG, count=2, pool="a", name="b"),
            ],
            id="counters of a pool with more slices than it should have",
        ),
        pytest.param(
            make_resource_claim("own", exactly()),
            [
                make_slice("a", _MIG | {"allowMultipleAllocations": True}, count=2),
                make_counters("a", {"memory": "1"}, count=2),
            ],
            id="counters of a device that is allocated several times",
        ),
        pytest.param(
            make_resource_claim("own", exactly()),
            [make_slice("a", make_device("x", attributes={"models": {"strings": ["a"]}}))],
            id="attribute of an unknown type",
        ),
        pytest.param(
            make_resource_claim("own", exactly("c", 0)), [make_slice("a", count=2)], id="all of an incomplete pool"
        ),
        pytest.param(
            make_resource_claim("own", exactly("c", 0)), [make_slice("a", *make_cards(33))], id="all of too many"
        ),
        pytest.param(
            allocated(make_resource_claim("own", exactly()), "a", "card-0", bindingConditions=["ready"]),
            [_CARDS],
            id="not ready",
        ),
    ],
)
def test_what_is_not_modelled_makes_the_verdict_unknown(claim: Object, objects: list[Object]) -> None:
    placement = _place_claim(claim, _CLASS, _OTHER, *objects)
    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("DynamicResources",))


def test_odd_device_that_is_not_asked_for_is_of_no_matter() -> None:
    parts = make_slice("b", _MIG, driver="part.example.com")
    placement = _place_claim(make_resource_claim("own", exactly("cards", 2)), _CLASS, _OTHER, _CARDS, parts)
    assert (placement.verdict, placement.node) == ("Feasible", "a")


def test_search_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feasibility, "StepBudget", partial(StepBudget, steps=2_000))
    cards = [make_device(f"c{number}", x=number, y=number % 3) for number in range(24)]
    requests = [exactly(f"r{number}", 5, device_class="any") for number in range(4)]
    claim = make_resource_claim("own", *requests, exactly("last", 1, "false", device_class="any"))
    for number in range(4):
        claim = constrained(claim, f"{DRIVER}/y", f"r{number}")
    claim = constrained(claim, f"{DRIVER}/x", "last")
    placement = _place_claim(claim, make_device_class("any", "true"), _OTHER, make_slice("a", *cards))
    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("DynamicResources",))


_EXTENDED = "example.com/card"
_NO_SELECTORS = make_device_class("plain", extended_resource=_EXTENDED, any_driver=True)
_SELECTING = make_device_class(extended_resource=_EXTENDED)
_BY_CARD = Profile.of("x", PluginArgs(scoring_strategy=ScoringStrategy(resources=((_EXTENDED, 1), ("cpu", 1)))))
_BALANCED = Profile.of("x", PluginArgs(balanced_resources=(_EXTENDED, "cpu")))
_WITHOUT_CLAIMS = Enabled((), ("NodeResourcesFit",), (("NodeResourcesFit", 1),))
_FOUR = make_slice("a", *make_cards(4))


@pytest.mark.parametrize(
    ("profile", "objects", "verdict", "unmodelled"),
    [
        pytest.param(DEFAULT, [_SELECTING, _FOUR, _OTHER], "Feasible", (), id="all known"),
        pytest.param(_BY_CARD, [_SELECTING, _FOUR, _OTHER], "Feasible", (), id="all known and scored"),
        pytest.param(DEFAULT, [_SELECTING, _OTHER], "Unknown", ("DynamicResources",), id="no slices"),
        pytest.param(
            _BY_CARD, [_SELECTING, _OTHER], "Unknown", ("DynamicResources", "NodeResourcesFit"), id="no slices, scored"
        ),
        pytest.param(
            Profile.of("x", _BY_CARD.args, _WITHOUT_CLAIMS),
            [_SELECTING, _OTHER],
            "Feasible",
            ("NodeResourcesFit",),
            id="no slices, only scored",
        ),
        pytest.param(
            _BALANCED,
            [_SELECTING, _FOUR, _OTHER],
            "Unknown",
            ("NodeResourcesBalancedAllocation",),
            id="kube-scheduler ends with a fault",
        ),
        pytest.param(_BALANCED, [_NO_SELECTORS, _FOUR, _OTHER], "Feasible", (), id="it does not"),
        pytest.param(
            DEFAULT,
            [
                make_device_class("own", '!has(device.attributes["a"].b) || true', extended_resource=_EXTENDED),
                _FOUR,
                _OTHER,
            ],
            "Feasible",
            (),
            id="selector that is known",
        ),
        pytest.param(
            _BY_CARD,
            [
                make_device_class("own", "!device.allowMultipleAllocations", extended_resource=_EXTENDED),
                make_slice("a", make_device("x"), make_device("y")),
                _OTHER,
            ],
            "Feasible",
            (),
            id="no device is shared",
        ),
        pytest.param(
            _BY_CARD,
            [
                make_device_class("own", "!device.allowMultipleAllocations", extended_resource=_EXTENDED),
                make_slice("a", make_device("x"), {"name": "y", "allowMultipleAllocations": True}),
                _OTHER,
            ],
            "Feasible",
            ("NodeResourcesFit",),
            id="selectors see other devices in the score",
        ),
    ],
)
def test_extended_resource_is_judged_where_its_devices_are_known(
    profile: Profile, objects: list[Object], verdict: str, unmodelled: tuple[str, ...]
) -> None:
    nodes = make_node_object("a"), make_node_object("b", capacity={_EXTENDED: 2})
    snapshot = snapshot_from_documents(Document("c", each) for each in (*nodes, *objects))
    placement = Scheduler(profile).place(make_pod().gpu(1, _EXTENDED).obj(), snapshot)
    assert (placement.verdict, placement.unmodelled) == (verdict, unmodelled)


def test_class_that_a_newer_one_replaces_may_or_may_not_keep_its_implicit_resource() -> None:
    newer = make_device_class("newer", extended_resource=_EXTENDED)
    newer["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    older = make_device_class("older", extended_resource=_EXTENDED)
    older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    objects = [newer, older, _FOUR, _OTHER]
    implicit = "deviceclass.resource.kubernetes.io/{}".format
    assert _place(make_pod().gpu(1, implicit("newer")), *objects).verdict == "Feasible"
    placement = _place(make_pod().gpu(1, implicit("older")), *objects)
    assert (placement.verdict, placement.unmodelled) == ("Unknown", ("DynamicResources",))


def test_extended_resource_that_only_a_plugin_could_offer_is_missing_where_it_is_not_asked_about() -> None:
    """NodeResourcesFit skips ignored resources, DynamicResources does not."""
    profile = Profile.of("x", PluginArgs(ignored_resources=frozenset(("example.com/nic",))))
    nodes = (
        make_node_object("a"),
        make_node_object("b", capacity={"example.com/nic": 0}),
        make_node_object("c", capacity={"example.com/nic": 4}),
    )
    slices = [make_slice(name, *make_cards(1, 1)) for name in "abc"]
    snapshot = snapshot_from_documents(Document("c", each) for each in (*nodes, _SELECTING, _OTHER, *slices))
    pod = make_pod().gpu(1, _EXTENDED).gpu(1, "example.com/nic").obj()
    placement = Scheduler(profile).place(pod, snapshot)
    assert set(placement.scores) == {"b", "c"}
    pod = make_pod().gpu(2, _EXTENDED).gpu(1, "example.com/nic").obj()
    assert Scheduler(profile).place(pod, snapshot).message == (
        "0/3 nodes are available: 1 cannot fit resource, 2 cannot allocate all claims."
    )


@pytest.mark.parametrize(
    ("objects", "template", "message"),
    [
        ([_CLASS, _OTHER], False, 'could not find ResourceClaim "default/own"'),
        (
            [make_resource_claim("another", exactly(), template=True)],
            True,
            'resourceclaimtemplate "own" not found: ResourceClaim not created yet',
        ),
    ],
)
def test_claim_that_is_not_there_is_waited_for(objects: list[Object], template: bool, message: str) -> None:
    pod = make_pod().spec(resourceClaims=claiming("own", template=template))
    placement = _place(pod, *objects)
    assert (placement.verdict, placement.message) == ("Waiting", f"0/2 nodes are available: {message}.")


def test_claim_that_is_being_deleted_is_waited_for() -> None:
    claim = make_resource_claim("own", exactly())
    claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    placement = _place_claim(claim, _CLASS, _CARDS)
    assert (placement.verdict, placement.message) == (
        "Waiting",
        '0/2 nodes are available: resourceclaim "own" is being deleted.',
    )


def test_claim_that_a_controller_has_made_counts_for_its_template() -> None:
    pod = make_pod().spec(resourceClaims=claiming("template", "none", template=True))
    statuses = [{"name": "c0", "resourceClaimName": "made"}, {"name": "c1"}]
    pod = pod.uid("p").status(resourceClaimStatuses=statuses)
    made = allocated(make_resource_claim("made", exactly()), "a", "card-0")
    made["metadata"]["ownerReferences"] = [{"name": "pod", "uid": "p", "controller": True}]
    placement = _place(pod, _CLASS, _CARDS, made)
    assert (placement.verdict, placement.node) == ("Feasible", "a")
    placement = _place(pod.uid("q"), _CLASS, _CARDS, made)
    assert (placement.verdict, placement.message) == (
        "Waiting",
        "0/2 nodes are available: ResourceClaim default/made was not created for Pod default/pod (Pod is not owner).",
    )
    del made["metadata"]["ownerReferences"]
    assert _place(pod, _CLASS, _CARDS, made).message == placement.message


def test_devices_of_a_node_template_are_not_known() -> None:
    claim = make_resource_claim("own", exactly("cards", 9))
    nodes = make_node_object("a"), make_node_object("b")
    snapshot = snapshot_from_documents(Document("c", each) for each in (*nodes, _CLASS, _CARDS, claim))
    pod = make_pod().spec(resourceClaims=claiming("own")).obj()
    assert Scheduler().place(pod, snapshot).verdict == "Infeasible"
    templates = template_nodes([NodeTemplate(name="big", capacity={"cpu": "8", "memory": "8Gi"})])
    assert Scheduler(templates=templates).place(pod, snapshot).verdict == "Waiting"


def test_pods_that_come_and_go_leave_what_is_known_of_devices() -> None:
    objects = make_node_object("a"), make_node_object("b"), _CLASS, _CARDS, make_resource_claim("own", exactly())
    snapshot = snapshot_from_documents(Document("c", each) for each in objects)
    pod = make_pod().spec(resourceClaims=claiming("own")).obj()
    Scheduler().place(pod, snapshot)
    (before,) = snapshot.devices.answers.values()
    busy = updated(snapshot, [snapshot.nodes[0]], generation=1)
    Scheduler().place(pod, busy)
    assert list(busy.devices.answers.values()) == [before]


def test_the_deadline_holds_within_the_search_for_devices() -> None:
    nodes = [make_node_object(f"n{number}") for number in range(50)]
    slices = [make_slice(f"n{number}", *make_cards(2)) for number in range(50)]
    objects = [*nodes, *slices, _CLASS, make_resource_claim("own", exactly())]
    snapshot = snapshot_from_documents(Document("c", each) for each in objects)
    pod = make_pod().spec(resourceClaims=claiming("own")).obj()
    asked = iter(range(1_000))
    placement = Scheduler().place(pod, snapshot, lambda: next(asked) > 20)
    assert placement == Placement.unknown("the deadline was near: not every plugin was asked")
    assert next(asked) < 25
    assert Scheduler().place(pod, snapshot).verdict == "Feasible"


def test_suggestions_for_claiming_pods_are_about_other_things() -> None:
    claims = {"resourceClaims": claiming("own")}
    nodes = make_node_object("a", taints=["team=vision:NoSchedule"]), make_node_object("b")
    objects = [_CLASS, _CARDS, make_resource_claim("own", exactly()), make_resource_claim("big", exactly("cards", 9))]
    snapshot = snapshot_from_documents(Document("c", each) for each in (*nodes, *objects))
    placement = Scheduler(suggestions=3).place(make_pod().spec(**claims).obj(), snapshot)
    assert placement.verdict == "Infeasible"
    assert placement.suggestions == ("1 node would fit if the pod tolerated team=vision",)
    hopeless = Scheduler(suggestions=3).place(make_pod().spec(resourceClaims=claiming("big")).obj(), snapshot)
    assert (hopeless.verdict, hopeless.suggestions) == ("Infeasible", ())


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"driver": 3}, "spec.driver: Invalid value: 3; must be text"),
        ({"pool": []}, "spec.pool: Invalid value: []; must be an object"),
        ({"devices": {}}, "spec.devices: Invalid value: {}; must be a list"),
        ({"devices": [None]}, "spec.devices[0]: Invalid value: null; must be an object"),
        ({"devices": [{"attributes": {"a": 1}}]}, "spec.devices[0].attributes[a]: Invalid value: 1; must be an object"),
        (
            {"devices": [{"capacity": {"memory": {"value": "much"}}}]},
            'spec.devices[0].capacity[memory].value: Invalid value: "much"; must be a quantity',
        ),
        ({"nodeSelector": []}, "spec.nodeSelector: Invalid value: []; must be an object"),
    ],
)
def test_malformed_slice_is_reported_with_place_and_name(spec: Object, path: str) -> None:
    broken = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
    with pytest.raises(InvalidInput) as raised:
        snapshot_from_documents([Document("c.yaml", broken)])
    assert str(raised.value).startswith(f"c.yaml: ResourceSlice s: {path}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("pool", "verdict"),
    [
        pytest.param("a", "Waiting", id="where it can be used"),
        pytest.param("gone", "Infeasible", id="on a node that is not there"),
    ],
)
def test_a_claim_may_keep_a_device_that_no_slice_has_any_more(pool: str, verdict: str) -> None:
    nodes = make_node_object("a", capacity={"cpu": 2}), make_node_object("b", capacity={"cpu": 2})
    running = make_pod("big").requests(cpu=2).node_name("a").obj()
    claim = allocated(make_resource_claim("c", exactly()), pool, "card-9")
    cluster = (*nodes, running, make_device_class(), claim, make_slice("b", *make_cards(1), driver="other.example.com"))
    snapshot = snapshot_from_documents(Document("c", each) for each in cluster)
    pod = make_pod().requests(cpu=1).spec(resourceClaims=claiming("c"))
    assert Scheduler().place(pod.obj(), snapshot).verdict == verdict


@pytest.mark.parametrize(("condition", "verdict"), [("ready", "Feasible"), ("failed", "Waiting")])
def test_a_claim_with_a_device_that_failed_is_waited_for(condition: str, verdict: str) -> None:
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    claim = allocated(make_resource_claim("c", exactly()), "a", "card-0", **conditions)
    device = {"driver": DRIVER, "pool": "a", "device": "card-0", "conditions": [{"type": condition, "status": "True"}]}
    claim["status"]["devices"] = [device]
    assert _place(make_pod().spec(resourceClaims=claiming("c")), _CLASS, _CARDS, claim).verdict == verdict


def test_a_node_that_lacks_two_claims_is_counted_once() -> None:
    """kube-scheduler names the search for devices first."""
    kept = allocated(make_resource_claim("kept", exactly()), "a", "card-0")
    objects = (make_device_class(), make_slice("a", *make_cards(1)), kept, make_resource_claim("new", exactly()))

    placement = _place(make_pod().spec(resourceClaims=claiming("kept", "new")), *objects)

    assert placement.message.startswith("0/2 nodes are available: 2 cannot allocate all claims.")


@pytest.mark.parametrize(("uses", "verdict"), [(("own", "own"), "Unknown"), (("own", "more"), "Feasible")])
def test_it_is_not_known_which_devices_a_claim_gets_that_a_pod_names_twice(uses: tuple[str, str], verdict: str) -> None:
    claims = [make_resource_claim(name, exactly()) for name in ("own", "more")]
    assert _place(make_pod().spec(resourceClaims=claiming(*uses)), _CLASS, _CARDS, *claims).verdict == verdict


def test_alternative_that_is_allocated_scores_beside_those_of_each_node() -> None:
    """As in upstream, so what a node scores more is a smaller share of all."""
    best = first_of("r", best=exactly("", 1, f'device.attributes["{DRIVER}"].model == "H100"'), other=exactly("", 1))
    shared = allocated(make_resource_claim("shared", first_of("r", best=exactly())), "a", "card-0", request="r/best")
    del shared["status"]["allocation"]["nodeSelector"]
    slices = [make_slice("a", *make_cards(2, model="A100")), make_slice("b", *make_cards(1, model="H100"))]
    objects = make_device_class(), make_resource_claim("own", best), shared, *slices
    nodes = [make_node_object(name) for name in "ab"]
    snapshot = snapshot_from_documents(Document("c", each) for each in (*nodes, *objects))

    def scores(*claims: str) -> list[int]:
        pod = pod_info(make_pod().spec(resourceClaims=claiming(*claims)))
        column = DynamicResources().score(pod, snapshot, np.arange(2))
        assert column is not None
        return list(column)

    assert scores("own") == [87, 100]
    assert scores("own", "shared") == [93, 100]


@pytest.mark.parametrize(
    ("templates", "planned", "found", "lacks"),
    [
        pytest.param(None, {}, None, True, id="no template is known"),
        pytest.param({}, {}, None, False, id="there is none"),
        pytest.param(None, {"own": "planned"}, "planned", False, id="one is created with the pod"),
        pytest.param(None, {"other": "planned"}, None, True, id="another one is"),
        pytest.param({"own": "known"}, {}, "known", False, id="it is known"),
        pytest.param({"own": "known"}, {"own": "planned"}, "known", False, id="the one of the cluster counts"),
        pytest.param({}, {"own": "planned"}, None, False, id="which may be none"),
    ],
)
def test_template_of_a_pod_is_that_of_the_cluster_or_else_the_planned_one(
    templates: dict[str, str] | None, planned: dict[str, str], found: str | None, lacks: bool
) -> None:
    def named(names: dict[str, str]) -> dict[tuple[str, str], ResourceClaim]:
        read = ResourceClaim.of(make_resource_claim("own", exactly(), template=True))
        return {("default", key): replace(read, name=name) for key, name in names.items()}

    devices = replace(
        NO_DEVICES, templates=None if templates is None else named(templates), planned_templates=named(planned)
    )
    of_template, of_claim = (PodResourceClaim("default", "own", is_template=each) for each in (True, False))

    claim = feasibility.resource_claim(of_template, devices)
    assert (claim and claim.name) == found
    assert feasibility.lacks_template(of_template, devices) is lacks
    # A claim of that name is another object.
    assert feasibility.resource_claim(of_claim, devices) is None
    assert not feasibility.lacks_template(of_claim, devices)

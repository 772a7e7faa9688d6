"""DynamicResources: the claims that keep a pod from all nodes, and the claim of an earlier attempt."""

from typing import Any

import pytest

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import (
    allocated,
    claiming,
    exactly,
    make_cards,
    make_device_class,
    make_resource_claim,
    make_slice,
)
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.placement.plugins.dynamic_resources import ERR_REASON_STALE_CLAIM, DynamicResources
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.scheduler import PodSignature

Object = dict[str, Any]
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def claim(name: str, *, template: bool = False, device_class: str = "gpu", is_deleted: bool = False) -> Object:
    made = make_resource_claim(name, exactly(device_class=device_class), template=template)
    made["metadata"] |= DELETED if is_deleted else {}
    return made


def snapshot_of(*objects: Object) -> Snapshot:
    """Return a cluster that knows its claims and templates."""
    found = [make_node_object("a"), make_device_class(), make_slice("a", *make_cards(2)), claim("other")]
    found += [claim("other", template=True), *objects]
    return snapshot_from_documents(Document("cluster", each) for each in found)


def info_of(*, template: bool, name: str = "wanted") -> PodInfo:
    pod = make_pod().namespace("default").spec(resourceClaims=claiming(name, template=template))
    return PodSignature.of(pod.obj()).info


@pytest.mark.parametrize(
    ("template", "objects", "reason", "is_transient"),
    [
        pytest.param(False, [claim("wanted")], "", False, id="a claim"),
        pytest.param(True, [claim("wanted", template=True)], "", False, id="a template"),
        pytest.param(
            False, [], 'could not find ResourceClaim "default/wanted"', True, id="a claim that does not exist"
        ),
        pytest.param(
            True,
            [],
            'resourceclaimtemplate "wanted" not found: ResourceClaim not created yet',
            True,
            id="a template that does not exist",
        ),
        pytest.param(
            False, [claim("wanted", is_deleted=True)], 'resourceclaim "wanted" is being deleted', True, id="it goes"
        ),
        pytest.param(
            True,
            [claim("wanted", template=True, is_deleted=True)],
            "",
            False,
            id="a template that goes still makes a claim",
        ),
        pytest.param(
            False,
            [claim("wanted", device_class="none")],
            "request cards: device class none does not exist",
            False,
            id="no such class",
        ),
        pytest.param(
            True,
            [claim("wanted", template=True, device_class="none")],
            "request cards: device class none does not exist",
            False,
            id="no such class for the template",
        ),
        pytest.param(
            False,
            [allocated(claim("wanted", device_class="none"), "a", "card-0")],
            "",
            False,
            id="an allocated claim needs no class",
        ),
        pytest.param(
            False,
            [allocated(claim("wanted", is_deleted=True), "a", "card-0")],
            'resourceclaim "wanted" is being deleted',
            True,
            id="an allocated claim that goes",
        ),
        pytest.param(
            False,
            [claim("wanted", template=True)],
            'could not find ResourceClaim "default/wanted"',
            True,
            id="only a template has the name",
        ),
    ],
)
def test_claims_that_keep_a_pod_from_all_nodes(
    template: bool, objects: list[Object], reason: str, is_transient: bool
) -> None:
    result = DynamicResources().pre_filter(info_of(template=template), snapshot_of(*objects))

    assert (result.reason, result.is_transient) == (reason, is_transient)


def test_first_claim_that_cannot_be_used_is_the_reason() -> None:
    pod = make_pod().namespace("default").spec(resourceClaims=claiming("fine", "lost", "bad"))
    snapshot = snapshot_of(claim("fine"), claim("bad", device_class="none"))

    result = DynamicResources().pre_filter(PodSignature.of(pod.obj()).info, snapshot)

    assert result.reason == 'could not find ResourceClaim "default/lost"'


@pytest.mark.parametrize(("is_empty", "rejected"), [(False, True), (True, False)])
def test_claim_of_an_earlier_attempt_keeps_a_pod_waiting_but_not_from_an_empty_cluster(
    is_empty: bool, rejected: bool
) -> None:
    """kube-scheduler deletes the claim, and then tries again."""
    pod = make_pod().namespace("default").uid("u1").gpu(1, "example.com/card")
    claim_of_pod = claim("pod-extended-resources")
    claim_of_pod["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "u1", "controller": True}],
    }
    backed = make_device_class("card", extended_resource="example.com/card")
    snapshot = snapshot_of(backed, claim_of_pod)
    info = PodSignature.of(pod.obj()).info.normalized_for(snapshot)
    assert info.stored in snapshot.devices.extended_claims

    failures = DynamicResources().filter(info, snapshot.without_pods() if is_empty else snapshot)

    assert any(each.reason == ERR_REASON_STALE_CLAIM and each.rejected.all() for each in failures) is rejected
    assert any(each.rejected.any() for each in failures) is rejected

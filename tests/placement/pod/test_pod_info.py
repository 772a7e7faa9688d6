"""The fields that PodInfo reads of a pod."""

from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import make_device_class
from tests.support.plugins import pod_info
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.pod.volumes import PodReference

_CARD = "example.com/gpu"


def test_pod_that_may_ask_for_devices_is_known_once_it_is_stored() -> None:
    """A new pod has no uid yet: no claim can have been made for it."""
    assert pod_info(make_pod("p").uid("u").gpu(1, _CARD)).stored == PodReference("p", "u")
    assert pod_info(make_pod("p").gpu(1, _CARD)).stored is None
    assert pod_info(make_pod("p").uid("u").requests(cpu="1")).stored is None


def test_containers_are_distinguished_where_a_device_class_backs_a_resource_that_they_ask_for() -> None:
    pod = pod_info(make_pod().gpu(1, _CARD).container("second", **{_CARD: 1}))
    device_class = make_device_class(extended_resource=_CARD)

    alone = snapshot_from_documents([Document("c", make_node_object("a"))])
    backed = snapshot_from_documents(Document("c", each) for each in (make_node_object("a"), device_class))

    assert pod.normalized_for(alone).by_container == ()
    assert pod.normalized_for(backed).by_container == pod.by_container != ()

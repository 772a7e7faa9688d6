"""What is read of a pod."""

from tests.support.builders import make_pod
from tests.support.plugins import pod_info
from webhook.kube.volumes import PodReference

_CARD = "example.com/gpu"


def test_pod_that_may_ask_for_devices_is_known_once_it_is_stored() -> None:
    """A new pod has no uid yet: no claim can have been made for it."""
    assert pod_info(make_pod("p").uid("u").gpu(1, _CARD)).stored == PodReference("p", "u")
    assert pod_info(make_pod("p").gpu(1, _CARD)).stored is None
    assert pod_info(make_pod("p").uid("u").requests(cpu="1")).stored is None

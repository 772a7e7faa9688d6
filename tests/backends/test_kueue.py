"""The fields of a pod that Kueue reads."""

from webhook.backends.backend import BatchRequest
from webhook.backends.registry import BACKENDS


def test_kueue_needs_queue_name_and_size_of_a_gang_together() -> None:
    expressed = BACKENDS["kueue"].express(BatchRequest(queue="q", gang="g", gang_size=4))

    assert [str(each) for each in expressed.fields] == [
        "label kueue.x-k8s.io/queue-name=q",
        "label kueue.x-k8s.io/pod-group-name=g",
        "annotation kueue.x-k8s.io/pod-group-total-count=4",
    ]
    assert expressed.missing == []

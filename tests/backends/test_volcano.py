"""The fields of a pod that Volcano reads."""

from webhook.backends.backend import BatchRequest
from webhook.backends.volcano import GROUP, PREEMPTABLE, QUEUE, Volcano


def test_queue_gang_and_preemption_are_annotations() -> None:
    request = BatchRequest(queue="team-a", gang="train", preemptible=True)

    fields = {field.path[-1]: (field.path[1], field.value) for field in Volcano.express(request).fields}
    assert fields == {
        QUEUE: ("annotations", "team-a"),
        GROUP: ("annotations", "train"),
        PREEMPTABLE: ("annotations", "true"),
    }


def test_a_share_of_a_card_is_asked_for_by_resources() -> None:
    expressed = Volcano.express(BatchRequest(gpu_fraction="0.5"))

    assert expressed == ([], [("gpu_fraction", "shares cards by the resources of its device plugin")])

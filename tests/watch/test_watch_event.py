"""The events of a watch."""

import orjson
import pytest

from tests.support.objects.builders import make_pod
from webhook.kube.pod.stored_pod import StoredPod
from webhook.watch.api_errors import ApiServerError
from webhook.watch.watch_event import read_event


def line(name: object, content: object) -> bytes:
    return orjson.dumps({"type": name, "object": content})


@pytest.mark.parametrize("name", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
def test_an_event_has_its_object_and_version(name: str) -> None:
    content = {"metadata": {"name": "a", "resourceVersion": "7"}}

    assert read_event(line(name, content), "Node") == (name, content, "7")


def test_a_pod_is_read_as_far_as_it_is_needed() -> None:
    name, pod, version = read_event(line("ADDED", make_pod("p").node_name("n").obj()), "Pod")

    assert (name, version) == ("ADDED", None)
    assert isinstance(pod, StoredPod)


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"{", "the watch sent invalid JSON"),
        (b"[]", "the watch sent an unknown event: None"),
        (line("SYNC", {}), "the watch sent an unknown event: SYNC"),
        (line("ADDED", []), "the watch sent an unknown event: ADDED"),
        (line("ERROR", {"message": "too old", "code": 410}), "the watch ended with an error: too old"),
    ],
)
def test_what_is_no_event_of_an_object_is_an_error(sent: bytes, problem: str) -> None:
    with pytest.raises(ApiServerError, match=problem):
        read_event(sent, "Node")

"""The traces that can be read, and one line about what is wrong with a file."""

from collections.abc import Callable

import orjson
import pytest

from placement_planner.simulation.api_audit import read_api_audit_log
from placement_planner.simulation.arrival import Arrival, Load, filling
from placement_planner.simulation.plain_csv import read_plain_csv
from webhook.documents.field import InvalidInput

Read = Callable[[bytes, str], object]

_HEADER = b"arrival,duration,replicas,requests,annotations\n"


def is_card(resource: str) -> bool:
    return resource == "nvidia.com/gpu"


def plain(data: bytes, place: str) -> list[Arrival]:
    return read_plain_csv(data, place, is_card)


def api_audit(data: bytes, place: str) -> list[Arrival]:
    return read_api_audit_log(data, place, is_card)


def test_a_line_of_a_plain_trace_is_equal_pods() -> None:
    row = b"7,30,4,cpu=2;nvidia.com/gpu=8,workload-type=training;gpu-product=A,B\n".replace(b"A,B", b"A")

    (found,) = plain(_HEADER + row, "t")

    assert (found.at_seconds, found.duration_seconds, found.replicas, found.cards) == (7, 30, 4, 8)
    assert found.pod["metadata"]["annotations"] == {"workload-type": "training", "gpu-product": "A"}
    assert found.pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "8"}


def test_equal_lines_of_a_trace_share_a_pod() -> None:
    first, second = plain(_HEADER + b"1,30,1,cpu=2,\n2,,,cpu=2,\n", "t")

    assert first.pod is second.pod
    assert second.duration_seconds is None


def event(verb: str, name: str, at: str, pod: object = None, **changes: object) -> bytes:
    content = {
        "kind": "Event",
        "stage": "ResponseComplete",
        "verb": verb,
        "objectRef": {"resource": "pods", "namespace": "team-a", "name": name},
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": f"2026-03-01T00:00:{at}.500000Z",
        "requestObject": pod,
    }
    return orjson.dumps(content | changes) + b"\n"


POD = {
    "metadata": {"name": "a", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
}


def test_pods_of_an_audit_log_run_until_they_are_deleted() -> None:
    log = event("create", "", "10", POD) + event("create", "b", "11", POD) + event("delete", "a", "40")

    first, second = api_audit(log, "t")

    assert (first.at_seconds, first.duration_seconds, first.cards) == (0, 30, 2)
    assert (second.at_seconds, second.duration_seconds) == (1, None)
    assert first.pod is second.pod
    assert first.pod["metadata"]["namespace"] == "team-a"


def test_a_pod_ends_with_its_first_deletion() -> None:
    """The kubelet deletes it again once its containers have ended."""
    log = event("create", "a", "10", POD) + event("delete", "a", "20") + event("delete", "a", "50")
    (arrival,) = api_audit(log, "t")
    assert arrival.duration_seconds == 10


def test_requests_that_stored_no_pod_and_pods_with_a_node_are_no_pods_of_a_trace() -> None:
    refused = event("create", "b", "11", POD, responseStatus={"code": 403})
    dry_run = event("create", "e", "11", POD, requestURI="/api/v1/namespaces/team-a/pods?dryRun=All")
    placed = event("create", "c", "11", POD | {"spec": POD["spec"] | {"nodeName": "n"}})  # type: ignore[operator]
    binding = event("create", "d", "11", {}, objectRef={"resource": "pods", "subresource": "binding"})

    assert len(api_audit(event("create", "a", "10", POD) + refused + dry_run + placed + binding, "t")) == 1


@pytest.mark.parametrize(
    ("read", "data", "message"),
    [
        (
            plain,
            _HEADER + b"1,-5,,cpu=1,\n",
            'line 2, column duration: Invalid value: "-5"; must be a number of seconds, not',
        ),
        (
            plain,
            _HEADER + b"1,nan,,cpu=1,\n",
            'line 2, column duration: Invalid value: "nan"; must be a number of seconds',
        ),
        (plain, _HEADER + b",1,,cpu=1,\n", "line 2, column arrival: Required value: must not be empty"),
        (
            plain,
            _HEADER + b"1,1,0,cpu=1,\n",
            'line 2, column replicas: Invalid value: "0"; must be a whole number, at least 1',
        ),
        (plain, _HEADER + b"1,1,,cpu=x,\n", 'line 2, column requests: Invalid value: "cpu=x"; '),
        (plain, _HEADER + b"1,1,,cpu,\n", 'line 2, column requests: Invalid value: "cpu"; must be a list such as'),
        (plain, _HEADER + b"1,1,,cpu=1,\n2,1\n", 'line 3: Invalid value: "2 cells"; must have 5 cells'),
        (plain, _HEADER, 't: Invalid value: "no row"; must have a row below the header'),
        (plain, b"", "line 1: Required value: must have the names of the columns"),
        (
            plain,
            b"arrival,requests,gpus\n1,cpu=1,1\n",
            'line 1, column 3: Unsupported value: "gpus"; supported values: "arrival"',
        ),
        (plain, b"arrival,requests,arrival\n", 'line 1, column 3: Duplicate value: "arrival"'),
        (plain, b"arrival,duration\n1,1\n", "line 1, column requests: Required value: the trace needs this column"),
        (
            plain,
            _HEADER + b"1,1,,cpu=1,\n\xff,1,,cpu=1,\n",
            'line 3: Invalid value: "invalid start byte"; must be UTF-8',
        ),
        (plain, _HEADER + b'1,1,,"cpu=1,\n', 'line 2: Invalid value: "unexpected end of data"; must be CSV'),
        (api_audit, event("create", "a", "10", POD)[:60], "line 1: Invalid value: "),
        (
            api_audit,
            b'{"time":"2026"}\n',
            'line 1: Invalid value: {"time": "2026"}; must be an event of the API server\'s audit log',
        ),
        (
            api_audit,
            event("create", "a", "10"),
            "line 1: requestObject: Required value: the level of the log must be Request or more",
        ),
        (
            api_audit,
            event("create", "a", "10", POD | {"metadata": ["a"]}),
            "line 1: requestObject: Required value: the level of the log must be Request or more",
        ),
        (api_audit, event("delete", "a", "10"), 't: Invalid value: "no pod"; must have the creation of a pod'),
    ],
)
def test_the_error_of_a_trace_names_line_and_column(read: Read, data: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read(data, "t")

    (error,) = raised.value.errors
    assert str(error).startswith(f"t, {message}" if message.startswith("line") else message)


def test_a_pod_that_is_too_large_for_a_step_comes_in_a_later_one() -> None:
    first, second = filling([8, 1, 1, 1], lambda each: each, 1, [2, 11])

    assert first == [1, 1]
    assert sorted(second) == [1, 8]


def test_each_pod_comes_in_one_step_only() -> None:
    steps = [*filling("abcd", lambda _: 1, 1, [1, 2, 4])]
    assert [len(each) for each in steps] == [1, 1, 2]
    assert sorted(pod for each in steps for pod in each) == [*"abcd"]


def test_random_arrivals_need_a_lifetime() -> None:
    (found,) = plain(b"arrival,requests\n0,nvidia.com/gpu=1\n", "t")

    with pytest.raises(
        InvalidInput, match="t, line 2: Required value: has no duration; --arrivals random needs --lifetime"
    ):
        Load("random").arrivals([found], 8, 1)

"""The traces that can be read, and one line about what is wrong with a file."""

import pytest

from placement_planner.simulation.arrival import Arrival, Load, filling
from placement_planner.simulation.plain_csv import read_plain_csv
from tests.support.programs.traces import lines
from webhook.documents.field import InvalidInput

_HEADER = b"arrival,duration,replicas,requests,annotations\n"


def is_card(resource: str) -> bool:
    return resource == "nvidia.com/gpu"


def plain(data: bytes, place: str) -> list[Arrival]:
    return read_plain_csv(data, place, is_card)


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


_CELLS = {
    "arrival": ("0", "5"),
    "duration": ("", "9"),
    "replicas": ("", "3"),
    "requests": ("cpu=1", "cpu=2"),
    "annotations": ("", "workload-type=training"),
    "name": ("", "p"),
    "namespace": ("", "team-a"),
    "labels": ("", "app=web"),
    "priority": ("", "7"),
    "scheduler": ("", "volcano"),
}


@pytest.mark.parametrize("column", _CELLS)
def test_lines_share_a_pod_if_they_differ_in_time_and_number_only(column: str) -> None:
    """The second line differs in one column, the third has the same cells within spaces."""
    first = {name: cell for name, (cell, _) in _CELLS.items()}
    second = first | {column: _CELLS[column][1]}
    data = lines(
        ",".join(first.values()),
        ",".join(second.values()),
        ",".join(f" {each} " for each in second.values()),
        header=" , ".join(_CELLS),
    )

    one, other, spaced = plain(data.encode(), "t")

    assert (one.pod is other.pod) is (column in ("arrival", "duration", "replicas"))
    assert spaced.pod is other.pod
    for each in (other, spaced):
        assert (each.at_seconds, each.duration_seconds, each.replicas) == (
            5 if column == "arrival" else 0,
            9 if column == "duration" else None,
            3 if column == "replicas" else 1,
        )
        metadata, spec = each.pod["metadata"], each.pod["spec"]
        assert metadata["name"] == ("p" if column == "name" else "trace")
        assert metadata["namespace"] == ("team-a" if column == "namespace" else "default")
        assert spec.get("priority") == (7 if column == "priority" else None)
        assert spec.get("schedulerName") == ("volcano" if column == "scheduler" else None)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"1,-5,,cpu=1,", 'duration: Invalid value: "-5"; must be a number of seconds, not'),
        (b",1,,cpu=1,", "arrival: Required value: must not be empty"),
        (b"1,1,0,cpu=1,", 'replicas: Invalid value: "0"; must be a whole number, at least 1'),
        (b"1,1,,cpu=x,", 'requests: Invalid value: "cpu=x"; cpu: '),
        (b"1,1,,cpu,", 'requests: Invalid value: "cpu"; must be a list such as'),
        (b"1,1,,=1,", 'requests: Invalid value: "=1"; must be a list such as'),
        (b"1,1,,cpu=1;cpu=2,", 'requests: Invalid value: "cpu=1;cpu=2"; must be a list such as'),
        (b"1,1,, ,", "requests: Required value: must not be empty"),
    ],
)
def test_the_error_of_a_trace_names_line_and_column(row: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        plain(_HEADER + b"0,,,cpu=1,\n" + row + b"\n", "t")

    (error,) = raised.value.errors
    assert str(error).startswith(f"t, line 3, column {message}")


def test_a_name_that_the_api_server_rejects_is_an_error() -> None:
    with pytest.raises(InvalidInput) as raised:
        plain(b"arrival,requests,name\n0,cpu=1,Bad_Name\n", "t")

    assert str(raised.value).startswith('t, line 2, column name: Invalid value: "Bad_Name"; a lowercase RFC 1123')


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


def test_a_row_of_a_trace_has_the_metadata_of_its_pod() -> None:
    header = "arrival,duration,requests,name,namespace,labels,annotations"
    data = lines("0,1,cpu=1,p,team-a,app=web;tier=front,workload-type=training", "0,1,cpu=1,,,,", header=header)

    named, bare = (each.pod["metadata"] for each in plain(data.encode(), "t"))

    labels = {"app": "web", "tier": "front"}
    annotations = {"workload-type": "training"}
    assert named == {"name": "p", "namespace": "team-a", "labels": labels, "annotations": annotations}
    assert bare == {"name": "trace", "namespace": "default", "labels": {}, "annotations": {}}

"""LimitRanger: defaults and limits of a namespace."""

from itertools import product

import pytest

from tests.admission.api_server.completing import of, refusal, view
from tests.support.objects.api_server import Object, limit_range
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.admission.api_server.limit_ranger import limit_violations
from webhook.admission.api_server.plugins import Completed, check_admitted
from webhook.cluster.left_out import LeftOut
from webhook.kube.deadline import never


def containers(*resources: Object) -> list[Object]:
    return [{"name": f"c{index}", "image": "i", "resources": each} for index, each in enumerate(resources)]


def test_missing_requests_are_the_limits_first_and_then_the_defaults() -> None:
    limits = limit_range(
        {"type": "Container", "max": {"cpu": "4"}, "defaultRequest": {"memory": "1024Mi"}, "min": {"memory": "1Mi"}}
    )

    found = of(view(limits), containers=containers({"limits": {"cpu": "2", "nvidia.com/gpu": 1}}, {}))

    first, second = (each["resources"] for each in found.pod["spec"]["containers"])
    assert first == {
        "limits": {"cpu": "2", "nvidia.com/gpu": 1},
        "requests": {"cpu": "2", "nvidia.com/gpu": 1, "memory": "1Gi"},
    }
    assert second == {"limits": {"cpu": "4"}, "requests": {"cpu": "4", "memory": "1Gi"}}
    assert found.sources == ("LimitRange limits",)


def test_defaults_are_noted_as_the_api_server_does() -> None:
    defaults = {"type": "Container", "default": {"cpu": "4", "memory": "1Gi"}}
    init = [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "1"}}}]

    found = of(view(limit_range(defaults)), containers=containers({"limits": {"cpu": "2"}}), initContainers=init)

    assert found.pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: memory request for container c0; memory limit for container c0; "
        "memory request for init container i; cpu, memory limit for init container i"
    )


def test_limit_range_without_defaults_adds_nothing() -> None:
    found = of(view(limit_range({"type": "Pod", "max": {"cpu": "4"}})), containers=containers({"limits": {"cpu": "2"}}))

    assert found.sources == ()
    assert "annotations" not in found.pod["metadata"]


def test_limit_ranges_of_other_namespaces_change_nothing() -> None:
    limits = limit_range({"type": "Container", "default": {"cpu": "4"}}, namespace="other")

    assert of(view(limits)) == Completed(make_pod("p").namespace("default").obj())


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (
            {"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}},
            "maximum cpu usage per Container is 1, but limit is 1500m",
        ),
        (
            {"type": "Container", "min": {"memory": "1Gi"}},
            "minimum memory usage per Container is 1Gi, but request is 512Mi",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        ({"type": "Pod", "max": {"memory": "1Gi"}}, "maximum memory usage per Pod is 1Gi.  No limit is specified"),
        ({"type": "Pod", "min": {"cpu": "2"}}, "minimum cpu usage per Pod is 2, but request is 500m"),
        (
            {"type": "Pod", "min": {"example.com/x": "2"}},
            "minimum example.com/x usage per Pod is 2.  No request is specified",
        ),
        ({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, ""),
    ],
)
def test_amounts_beyond_a_limit_range_are_refused(item: Object, words: str) -> None:
    asked = {"containers": containers({"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"cpu": "1500m"}})}
    snapshot = view(limit_range(item))
    if words:
        assert refusal(snapshot, **asked) == words
    else:
        check_admitted(of(snapshot, **asked).pod, snapshot)


def test_limits_of_a_pod_count_sidecars_and_the_peak_of_init_containers() -> None:
    init = containers({"limits": {"memory": "1Gi"}}, {"limits": {"memory": "3Gi"}})
    init[0]["restartPolicy"] = "Always"
    asked = {"containers": containers({"limits": {"memory": "1Gi"}}), "initContainers": init}

    words = "maximum memory usage per Pod is 2Gi, but limit is 4Gi"
    assert refusal(view(limit_range({"type": "Pod", "max": {"memory": "2Gi"}})), **asked) == words


@pytest.mark.parametrize(
    ("limits", "of_pod", "words"),
    [
        ([{"cpu": "1"}, {}], {"requests": {"cpu": "2"}}, "but request is 2"),
        ([{"cpu": "1"}, {"cpu": "500m"}], {"requests": {"cpu": "2"}}, "but limit is 2"),
        ([{"cpu": "3"}, {"cpu": "500m"}], {"requests": {"cpu": "2"}}, "but limit is 3500m"),
        ([{"cpu": "1"}, {}], {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}, "but limit is 4"),
        ([{}, {}], {"requests": {"cpu": "1"}}, ".  No limit is specified"),
    ],
)
def test_a_pod_with_amounts_of_its_own_is_held_to_these(limits: list[Object], of_pod: Object, words: str) -> None:
    """Its requests are its limits at least if each container has a limit."""
    snapshot = view(limit_range({"type": "Pod", "max": {"cpu": "1"}}))
    asked = {"containers": containers(*({"limits": each} for each in limits)), "resources": of_pod}
    pod = make_pod("p").namespace("default").spec(**asked).obj()

    found = limit_violations(pod, snapshot.limit_ranges["default"], never)

    separator = "" if words.startswith(".") else ", "
    assert found == [f"maximum cpu usage per Pod is 1{separator}{words}"]


def test_limit_range_that_cannot_be_read_makes_the_pods_of_its_namespace_unknown() -> None:
    snapshot = view()
    snapshot.left_out = LeftOut({("LimitRange", "default"): frozenset(("large",))})

    assert of(snapshot).unknown == "a LimitRange of the namespace default cannot be read"


def worded(amount: int) -> str:
    """Return thousandths of a CPU in the API server's words."""
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


AMOUNTS = (None, 999, 1000, 1001)


@pytest.mark.parametrize("kind", ["Container", "Pod"])
@pytest.mark.parametrize("bound", ["min", "max"])
def test_a_bound_holds_for_the_amount_that_it_names_first(bound: str, kind: str) -> None:
    """A missing request is the limit, which the API server fills in before."""
    snapshot = view(limit_range({"type": kind, bound: {"cpu": "1"}}))
    for request, limit in product(AMOUNTS, repeat=2):
        amounts = {"requests": request if request is not None else limit, "limits": limit}
        resources = {part: {"cpu": f"{each}m"} for part, each in amounts.items() if each is not None}
        first, second = ("request", "limit") if bound == "min" else ("limit", "request")
        begin = f"{'minimum' if bound == 'min' else 'maximum'} cpu usage per {kind} is 1"

        def is_bad(amount: int | None) -> bool:
            return amount is not None and (amount < 1000 if bound == "min" else amount > 1000)

        if amounts[f"{first}s"] is None:
            wanted = f"{begin}.  No {first} is specified"
        else:
            bad = [part for part in (first, second) if is_bad(amounts[f"{part}s"])]
            wanted = f"{begin}, but {bad[0]} is {worded(amounts[f'{bad[0]}s'] or 0)}" if bad else ""
        asked = {"containers": containers(resources)}
        pod = make_pod("p").namespace("default").spec(**asked).obj()
        assert limit_violations(pod, snapshot.limit_ranges["default"], never) == ([wanted] if wanted else [])


@pytest.mark.parametrize(
    ("asked", "limit", "ending"),
    [
        (None, None, "no request is specified or request is 0"),
        ("0", "1", "no request is specified or request is 0"),
        ("1", None, "no limit is specified or limit is 0"),
        ("1", "0", "no limit is specified or limit is 0"),
        ("1", "2", ""),
        ("1", "2001m", "provided ratio is 2.001000"),
        ("1", "1999m", ""),
        ("500m", "1001m", "provided ratio is 2.002000"),
        ("1Ei", "3Ei", "provided ratio is 3.000000"),
    ],
)
def test_a_ratio_is_compared_exactly(asked: str | None, limit: str | None, ending: str) -> None:
    resources = {"requests": {"cpu": asked} if asked else {}, "limits": {"cpu": limit} if limit else {}}
    item = limit_range({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}})
    pod = make_pod("p").namespace("default").spec(containers=containers(resources)).obj()
    begin = "cpu max limit to request ratio per Container is 2, but "

    assert limit_violations(pod, view(item).limit_ranges["default"], never) == ([begin + ending] if ending else [])


@pytest.mark.parametrize(
    ("pod", "requests"),
    [
        (make_pod().requests(cpu=2), 2),
        (make_pod().requests(cpu=2).container("b", cpu=1), 3),
        (make_pod().requests(cpu=2).init_container("i", cpu=1), 2),
        (make_pod().requests(cpu=2).init_container("i", cpu=5), 5),
        (make_pod().requests(cpu=2).init_container("i", cpu=5).init_container("j", cpu=4), 5),
        (make_pod().requests(cpu=2).sidecar("s", cpu=1), 3),
        (make_pod().requests(cpu=2).sidecar("s", cpu=1).init_container("i", cpu=4), 5),
        (make_pod().requests(cpu=2).init_container("i", cpu=4).sidecar("s", cpu=1), 4),
        (make_pod().requests(cpu=2).sidecar("s", cpu=1).sidecar("t", cpu=2).init_container("i", cpu=4), 7),
        (make_pod().requests(cpu=2).container("b", cpu=1).pod_resources(cpu=4), 4),
        (make_pod().requests(cpu=2).pod_resources(memory="1Gi"), 2),
        (make_pod(), None),
    ],
)
def test_the_amounts_of_a_pod_are_its_own_or_those_of_its_containers_as_they_run(
    pod: PodBuilder, requests: int | None
) -> None:
    """A minimum is met by exactly the total."""
    for least in range(1, 9):
        ranges = view(limit_range({"type": "Pod", "min": {"cpu": str(least)}})).limit_ranges["default"]
        found = limit_violations(pod.obj(), ranges, never)
        lacks = "" if requests is not None and requests >= least else f"minimum cpu usage per Pod is {least}"
        assert [each.partition(",")[0].partition(".")[0] for each in found] == ([lacks] if lacks else [])


def test_the_first_range_that_a_pod_violates_gives_all_messages_once() -> None:
    first = limit_range({"type": "Container", "min": {"cpu": "2", "memory": "1Gi"}})
    second = limit_range({"type": "Container", "min": {"cpu": "3"}})
    second["metadata"]["name"] = "other"
    pod = make_pod().requests(cpu=1).container("b", cpu=1).container("c", cpu=2, memory="1Gi").obj()
    ranges = view(first, second).limit_ranges["default"]

    assert limit_violations(pod, ranges, never) == [
        "minimum cpu usage per Container is 2, but request is 1",
        "minimum memory usage per Container is 1Gi.  No request is specified",
    ]
    assert limit_violations(make_pod().requests(cpu=2, memory="1Gi").obj(), ranges, never) == [
        "minimum cpu usage per Container is 3, but request is 2"
    ]

"""LimitRanger: defaults and limits of a namespace."""

import pytest

from tests.admission.api_server.completing import of, refusal, view
from tests.support.objects.api_server import Object, limit_range
from tests.support.objects.builders import make_pod
from webhook.admission.api_server.plugins import Completed, check_admitted
from webhook.cluster.left_out import LeftOut


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


def test_limit_range_that_cannot_be_read_makes_the_pods_of_its_namespace_unknown() -> None:
    snapshot = view()
    snapshot.left_out = LeftOut({("LimitRange", "default"): frozenset(("large",))})

    assert of(snapshot).unknown == "a LimitRange of the namespace default cannot be read"

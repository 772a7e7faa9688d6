"""A pod that every API server rejects is found in a file, in the words of the API server."""

from collections.abc import Mapping, Sequence

import pytest

from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.documents.field import InvalidInput
from webhook.kube.pod.pod_validation import check_complete, check_storable

Amounts = Mapping[str, Mapping[str, str]]


def with_resources(**resources: dict[str, str]) -> PodBuilder:
    container = {"name": "main", "image": "pause", "resources": resources}
    return make_pod("p").spec(containers=[container])


def with_affinity(*terms: dict[str, object]) -> PodBuilder:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return make_pod("p").spec(affinity={"nodeAffinity": required})


def expression(operator: str, *values: str, key: str = "disk") -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def tolerating(**toleration: object) -> PodBuilder:
    return make_pod("p").spec(tolerations=[toleration])


def of_pod(containers: Sequence[Amounts] = (), init: Sequence[Amounts] = (), **resources: object) -> PodBuilder:
    """Return a pod with these resources as a whole, and containers with their own."""
    made = [
        [{"name": f"{name}{place}", "image": "pause", "resources": each} for place, each in enumerate(found)]
        for name, found in (("c", containers or ({},)), ("i", init))
    ]
    return make_pod("p").spec(containers=made[0], initContainers=made[1], resources=resources)


PREFERRED = {"weight": 1, "preference": expression("Is", "ssd")}
REJECTED = {
    "a resource without a domain": with_resources(limits={"gpus": "3"}),
    "a resource of a quota": with_resources(requests={"pods": "1"}),
    "the requests of a quota": with_resources(
        limits=dict.fromkeys(("requests.cpu", "limits.memory", "requests.storage", "requests.hugepages-2Mi"), "1")
    ),
    "a resource of a quota with a domain": with_resources(limits={"requests.nvidia.com/gpu": "1"}),
    "a resource without a name": with_resources(limits={"nvidia.com/": "1"}),
    "a resource with two slashes": with_resources(limits={"nvidia.com/gpu/x": "1"}),
    "a toleration of every key with a value": tolerating(operator="Equal", value="x"),
    "an empty toleration": tolerating(),
    "a value that exists": tolerating(key="a", operator="Exists", value="x"),
    "an unknown effect, with seconds": tolerating(key="a", operator="In", effect="Never", tolerationSeconds=4),
    "seconds without an effect": tolerating(key="a", tolerationSeconds=4),
    "a bad key of a taint": tolerating(key="a b", operator="Exists"),
    "a bad value of a taint": tolerating(key="a", value="a b"),
    "a bad and long value of a taint": tolerating(key="a", value="a b" * 30),
    "a bad label of a node": make_pod("p").spec(nodeSelector={"a b": "b c"}),
    "no term": with_affinity(),
    "an unknown operator": with_affinity({}, expression("Is", "ssd")),
    "no value": with_affinity(expression("NotIn")),
    "a value of what exists": with_affinity(expression("Exists", "ssd")),
    "two values to be above": with_affinity(expression("Gt", "1", "2")),
    "a bad value of a requirement": with_affinity(expression("In", "ssd", "a b")),
    "a bad key of a requirement": with_affinity(expression("Exists", key="a b")),
    "an unknown operator of a preference": make_pod("p").spec(
        affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}}
    ),
    "a part of a card": with_resources(limits={"nvidia.com/gpu": "0.5"}, requests={"nvidia.com/gpu": "0.5"}),
    "cards without a limit": with_resources(requests={"nvidia.com/gpu": "2"}),
    "fewer cards than the limit": with_resources(limits={"nvidia.com/gpu": "4"}, requests={"nvidia.com/gpu": "2"}),
    "more memory than the limit": with_resources(limits={"memory": "1Gi"}, requests={"memory": "2Gi"}),
    "a name in capitals": make_pod("Trainer"),
    "a name with an underscore": make_pod("my_pod"),
    "a long name": make_pod("a" * 254),
    "a long container name": make_pod("p").spec(containers=[{"name": "a" * 64, "image": "pause"}]),
    "a long prefix": make_pod("").generate_name("a" * 300),
    "a bad prefix": make_pod("").generate_name("My-"),
    "a bad label": make_pod("p").label("team", "a b"),
    "a long label": make_pod("p").label("team", "a" * 64),
    "a bad key of a label": make_pod("p").label("a b/c_", "x"),
    "a long key of a label": make_pod("p").label("a" * 64, "x"),
    "a key of a label with two slashes": make_pod("p").label("a/b/c", "x"),
    "a key of a label without a name": make_pod("p").label("a/", "x"),
    "a limit of a part of a card": with_resources(limits={"nvidia.com/gpu": "0.5"}),
    "a negative amount": with_resources(requests={"cpu": "-1.5"}),
    "a negative number of cards": with_resources(limits={"nvidia.com/gpu": "-1000"}),
    "a part of a mebibyte above the limit": with_resources(limits={"memory": "1.5Gi"}, requests={"memory": "2e9"}),
    "two containers of one name": make_pod("p").spec(containers=[{"name": "a", "image": "pause"}] * 2),
    "an init container with the name of another": make_pod("p").spec(
        containers=[{"name": "a", "image": "pause"}], initContainers=[{"name": "a", "image": "pause"}]
    ),
    "huge pages alone": with_resources(limits={"hugepages-2Mi": "128Mi"}),
    "huge pages in parts": with_resources(limits={"hugepages-2Mi": "3Mi", "cpu": "1"}),
    "huge pages of no size": with_resources(limits={"hugepages-x": "2Mi", "cpu": "1"}),
    "cards of the pod as a whole": of_pod(limits={"nvidia.com/gpu": "1"}),
    "storage of the pod as a whole": of_pod(requests={"ephemeral-storage": "1Gi"}),
    "an unknown resource of the pod as a whole": of_pod(requests={"gpus": "1", "a b": "1"}),
    "less than its containers request": of_pod(
        [{"requests": {"cpu": "4"}}], requests={"cpu": "1"}, limits={"cpu": "1"}
    ),
    "less than its containers request in all": of_pod(
        [{"requests": {"memory": "1.5Gi"}}, {"limits": {"memory": "1Gi"}}], requests={"memory": "2Gi"}
    ),
    "less than an init container requests beside a sidecar": make_pod("p").spec(
        containers=[{"name": "c", "image": "pause"}],
        initContainers=[
            {"name": "s", "image": "pause", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
            {"name": "i", "image": "pause", "resources": {"requests": {"cpu": "500m"}}},
        ],
        resources={"requests": {"cpu": "1200m"}},
    ),
    "requests of the pod as a whole above the limits": of_pod(requests={"cpu": "3"}, limits={"cpu": "1"}),
    "a limit of the pod as a whole below the requests of its containers": of_pod(
        [{"requests": {"cpu": "2"}}], limits={"cpu": "1"}
    ),
    "a limit of the pod as a whole below that of a container": of_pod(
        [{"limits": {"memory": "2Gi"}, "requests": {"memory": "1Gi"}}], limits={"memory": "1Gi"}
    ),
    "huge pages of the pod as a whole alone": of_pod(limits={"hugepages-2Mi": "128Mi"}),
    "huge pages of the pod as a whole without a limit": of_pod(requests={"hugepages-2Mi": "128Mi", "cpu": "1"}),
    "fewer huge pages than its containers": of_pod(
        [{"limits": {"hugepages-2Mi": "64Mi", "cpu": "1"}}], limits={"hugepages-2Mi": "32Mi", "cpu": "1"}
    ),
    "a negative amount of the pod as a whole": of_pod(requests={"memory": "-1"}),
    "resources of a Windows pod": of_pod(requests={"cpu": "1"}).spec(os={"name": "windows"}),
    "claims of the pod as a whole": of_pod(requests={"cpu": "1"}, claims=[]),
    "no container": make_pod("p").spec(containers=[]),
    "only an init container": make_pod("p").spec(containers=None, initContainers=[{"name": "i", "image": "pause"}]),
    "a bad container name": make_pod("p").spec(containers=[{"name": "Main", "image": "pause"}]),
}
STORED = {
    "as much as its containers request": of_pod([{"requests": {"cpu": "4"}}], requests={"cpu": "4"}),
    "huge pages of its containers": of_pod([{"limits": {"hugepages-2Mi": "64Mi", "cpu": "1"}}], limits={"cpu": "1"}),
    "no resources of the pod as a whole": of_pod([{"requests": {"cpu": "4"}}]),
    "more than its containers request": of_pod(
        [{}, {"requests": {"cpu": "1"}}], limits={"cpu": "8", "memory": "8Gi", "hugepages-2Mi": "512Mi"}
    ),
    "a bad value of a preference": make_pod("p").spec(
        affinity={
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": expression("In", "a b")}
                ]
            }
        }
    ),
    "a term without a requirement": with_affinity({}),
    "what is no number to be above": with_affinity(expression("Gt", "x")),
    "a resource of Kubernetes": with_resources(limits={"kubernetes.io/foo": "1", "ephemeral-storage": "1Gi"}),
    "every taint": tolerating(operator="Exists"),
    "an evicting taint": tolerating(key="a", effect="NoExecute", tolerationSeconds=4),
    "a generated name": make_pod("").generate_name("trainer-"),
    "whole cards": with_resources(limits={"nvidia.com/gpu": "2"}),
    "milli cards that are whole": with_resources(limits={"nvidia.com/gpu": "2000m"}),
    "less memory than the limit": with_resources(limits={"memory": "2Gi"}, requests={"memory": "1Gi"}),
    "memory without a limit": with_resources(requests={"memory": "1Gi"}),
}


@pytest.mark.parametrize("pod", REJECTED.values(), ids=REJECTED)
def test_the_errors_are_those_of_the_api_server_word_for_word(cluster: Cluster, pod: PodBuilder) -> None:
    with pytest.raises(ApiError) as rejected:
        cluster.client.create(pod.namespace(cluster.namespace).obj())
    with pytest.raises(InvalidInput) as found:
        check_storable(pod.obj())

    causes = rejected.value.status["details"]["causes"]
    # A bad prefix makes a bad name, too, with an end that is random.
    stated = {
        f"{each['field']}: {each['message']}"
        for each in causes
        if pod.obj()["metadata"].get("name") or each["field"] != "metadata.name"
    }
    assert {str(each) for each in found.value.errors} == stated


@pytest.mark.parametrize("pod", STORED.values(), ids=STORED)
def test_what_an_api_server_stores_is_no_error(cluster: Cluster, pod: PodBuilder) -> None:
    check_storable(pod.obj())

    cluster.client.create(pod.namespace(cluster.namespace).obj(), dry_run=True)


@pytest.mark.parametrize(
    "pod",
    [tolerating(key="a", operator=operator, value="5") for operator in ("Lt", "Gt")],
    ids=["Lt", "Gt"],
)
def test_what_some_api_servers_store_is_no_error(pod: PodBuilder) -> None:
    check_storable(pod.obj())


INCOMPLETE = {
    "no name": make_pod(""),
    "no name of a container": make_pod("p").spec(containers=[{"image": "pause"}]),
    "no image": make_pod("p").spec(containers=[{"name": "c"}]),
    "neither of an init container": make_pod("p").spec(
        containers=[{"name": "c", "image": "pause"}], initContainers=[{}]
    ),
}


@pytest.mark.parametrize("pod", INCOMPLETE.values(), ids=INCOMPLETE)
def test_what_is_missing_is_stated_in_the_words_of_the_api_server(cluster: Cluster, pod: PodBuilder) -> None:
    with pytest.raises(ApiError) as rejected:
        cluster.client.create(pod.namespace(cluster.namespace).obj())
    with pytest.raises(InvalidInput) as found:
        check_complete(pod.obj())

    causes = rejected.value.status["details"]["causes"]
    assert {str(each) for each in found.value.errors} == {f"{each['field']}: {each['message']}" for each in causes}


def test_a_complete_pod_has_no_error() -> None:
    check_complete(make_pod("").generate_name("p-").spec(containers=[{"name": "c", "image": "pause"}]).obj())

"""Requests of a pod, in the terms of each backend."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.requests import WRITTEN
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.backends.backend import BatchRequest, DomainRequest
from webhook.backends.registry import BACKENDS

_requests = st.builds(
    BatchRequest,
    queue=st.none() | st.just("q"),
    gang=st.none() | st.just("g"),
    gang_size=st.none() | st.just(4),
    gpu_fraction=st.none() | st.just("0.5"),
    preemptible=st.none() | st.booleans(),
)


@pytest.mark.parametrize(
    ("backend", "attribute", "written"),
    [(backend, attribute, written) for backend, rows in WRITTEN.items() for attribute, written in rows],
    ids=str,
)
def test_each_attribute_alone_is_written_or_named_as_missing(
    backend: str, attribute: dict[str, Any], written: str | None
) -> None:
    expressed = BACKENDS[backend].express(BatchRequest(**attribute))

    assert [str(each) for each in expressed.fields] == ([written] if written else [])
    assert {name for name, _ in expressed.missing} == (set(attribute) if written is None else set())


@given(backend=st.sampled_from(sorted(set(BACKENDS) - {"kueue"})), request=_requests)
def test_attributes_are_expressed_each_by_itself(backend: str, request: BatchRequest) -> None:
    """The size of a gang is the exception: the PodGroup that a gang names has it."""
    parts = {each: getattr(request, each) for each in BatchRequest.__slots__}
    alone = [BACKENDS[backend].express(BatchRequest(**{name: value})) for name, value in parts.items()]

    expressed = BACKENDS[backend].express(request)

    assert {*expressed.fields} == {field for each in alone for field in each.fields}
    missing = {each for part in alone for each in part.missing if each[0] != "gang_size" or request.gang is None}
    assert {*expressed.missing} == missing


RACK = "topology.kubernetes.io/rack"
OF_NEW, OF_UNNAMED = make_pod().owner_to_be("Job", "bert"), make_pod().owner_to_be("Job", "bert-")
PODSET_KEY = "kueue.x-k8s.io/podset-required-topology"
OWNED, OF_SET = make_pod().owner("Job", "bert"), make_pod().owner("StatefulSet", "bert")
OF_JOB = make_pod().label("volcano.sh/job-name", "bert")
QUEUED = make_pod().label("kueue.x-k8s.io/queue-name", "q")
KAI = ("kai.scheduler/topology", "kai.scheduler/topology-required-placement")


@pytest.mark.parametrize(
    ("backend", "pod", "gang", "in_objects", "wanted"),
    [
        ("kueue", QUEUED, "bert", False, ["kueue.x-k8s.io/podset-required-topology"]),
        ("kueue", OF_NEW, None, True, ["kueue.x-k8s.io/podset-required-topology"]),
        ("kueue", OF_NEW, None, False, []),
        ("kueue", OWNED.annotate(PODSET_KEY, RACK), None, True, [PODSET_KEY]),
        # It has read the template, which does not have the key.
        ("kueue", OWNED, None, True, []),
        ("kueue", OF_UNNAMED, None, True, []),
        ("kueue", OWNED, None, False, []),
        ("kueue", make_pod(), "bert", True, []),
        ("kai", make_pod(), None, False, [*KAI]),
        ("kai", OF_SET, None, True, [*map("owner {}".format, KAI)]),
        ("kai", OF_SET, None, False, []),
        # It makes a PodGroup for each of these pods.
        ("kai", OWNED, None, True, []),
        ("kai", OWNED.label("jobset.sigs.k8s.io/jobset-name", "bert"), None, True, [*map("owner {}".format, KAI)]),
        ("kai", make_pod().owner("ReplicaSet", "bert"), None, True, []),
        ("kai", make_pod(), "bert", True, []),
        # It replaces the PodGroup that the pod names.
        ("kai", OF_SET, "bert", True, [*map("owner {}".format, KAI)]),
        ("kai", make_pod().annotate("pod-group-name", "bert"), None, True, []),
        (
            "volcano",
            OWNED,
            None,
            False,
            ["volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier"],
        ),
        ("volcano", make_pod(), "bert", True, []),
        ("volcano", make_pod().annotate("scheduling.k8s.io/group-name", "bert"), None, True, []),
        ("volcano", OF_JOB, "bert", True, ["owner networkTopology"]),
        ("volcano", OF_JOB, None, False, []),
        ("native", make_pod(), "bert", True, []),
    ],
)
def test_a_domain_is_stated_where_the_scheduler_reads_it(
    backend: str, pod: PodBuilder, gang: str | None, in_objects: bool, wanted: list[str]
) -> None:
    request = DomainRequest(RACK, True, BatchRequest(gang=gang), pod.obj(), "racks", 1, in_objects)

    found = BACKENDS[backend].in_domain(request)

    stated = [each.path[-1] for each in found.fields] + [f"owner {path[-1]}" for path, _ in found.of_owner]
    assert stated == wanted
    assert bool(found.missing) is not bool(wanted)


@pytest.mark.parametrize(("is_controller", "is_stated"), [(True, False), (False, True)])
def test_only_the_owner_that_controls_a_pod_groups_it(is_controller: bool, is_stated: bool) -> None:
    """KAI makes a PodGroup for each pod of a Job."""
    pod = OWNED.obj()
    pod["metadata"]["ownerReferences"][0]["controller"] = is_controller

    found = BACKENDS["kai"].in_domain(DomainRequest(RACK, True, BatchRequest(), pod, "racks"))

    assert bool(found.fields) is is_stated


@pytest.mark.parametrize(("is_required", "word"), [(True, "required"), (False, "preferred")])
def test_kai_reads_whether_a_domain_is_required_in_the_key(is_required: bool, word: str) -> None:
    request = DomainRequest(RACK, is_required, BatchRequest(), make_pod().obj(), "racks")

    assert (
        str(BACKENDS["kai"].in_domain(request).fields[1])
        == f"annotation kai.scheduler/topology-{word}-placement={RACK}"
    )


@pytest.mark.parametrize("backend", ["kai", "volcano"])
def test_a_domain_needs_its_name_in_the_policy(backend: str) -> None:
    found = BACKENDS[backend].in_domain(DomainRequest(RACK, True, BatchRequest(), make_pod().obj()))

    assert (found.fields, "in the policy" in found.missing) == ((), True)


def test_each_backend_has_a_way_to_keep_a_gang_in_one_domain() -> None:
    by_affinity = {name for name, each in BACKENDS.items() if each.keeps_by_affinity}

    assert by_affinity == {"default", "coscheduling"}
    assert {name for name, each in BACKENDS.items() if "in_domain" in vars(each)} == BACKENDS.keys() - by_affinity

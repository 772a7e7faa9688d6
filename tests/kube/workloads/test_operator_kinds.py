"""The pods of objects of batch schedulers and operators."""

from tests.kube.workloads.reading import sets_of
from tests.support.objects.workload_objects import (
    SPEC,
    TEMPLATE,
    jobset,
    volcano,
    workload,
)


def test_a_train_job_holds_no_template() -> None:
    assert sets_of(workload("trainer.kubeflow.org/v1alpha1", "TrainJob", {"runtimeRef": {"name": "torch"}})) == ()


def test_the_scheduler_of_a_volcano_job_is_that_of_its_pods() -> None:
    own = {"spec": {**SPEC, "schedulerName": "mine"}}
    named = volcano({"template": TEMPLATE}, {"template": own}, schedulerName="kai-scheduler")

    assert [each.pod["spec"]["schedulerName"] for each in sets_of(named)] == ["kai-scheduler", "mine"]
    assert sets_of(volcano({"template": TEMPLATE}))[0].pod["spec"]["schedulerName"] == "volcano"


def test_the_priority_class_of_a_volcano_job_is_that_of_its_pods() -> None:
    own = {"spec": {**SPEC, "priorityClassName": "low"}}
    content = volcano({"template": TEMPLATE}, {"template": own}, priorityClassName="high")

    assert [each.pod["spec"]["priorityClassName"] for each in sets_of(content)] == ["high", "low"]


def test_a_network_topology_of_partitions_leaves_the_placement_of_templates_unknown() -> None:
    topology = {"mode": "hard", "highestTierAllowed": 1}
    partitions = {"totalPartitions": 2, "partitionSize": 2, "networkTopology": topology}
    job = volcano({"template": TEMPLATE, "partitionPolicy": partitions}, {"template": TEMPLATE})
    of_flow = {**job, "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate"}

    # What is known of a Job depends on all of its tasks.
    assert [each.caveat for each in sets_of(job)] == ["", ""]
    assert [each.caveat for each in sets_of(of_flow)] == [
        "Volcano keeps each of its partitions within a domain of its network topology",
        "",
    ]


def test_a_topology_that_kai_requires_of_the_owner_leaves_the_placement_unknown() -> None:
    content = jobset()
    content["metadata"]["annotations"] = {"kai.scheduler/topology-required-placement": "rack"}

    assert all(each.caveat.startswith("KAI keeps its pods within a domain") for each in sets_of(content))

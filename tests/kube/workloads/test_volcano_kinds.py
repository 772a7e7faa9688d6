"""The pods of the kinds of Volcano."""

from typing import Any

from tests.kube.workloads.reading import sets_of
from tests.support.objects.workload_objects import TEMPLATE, volcano, workload
from webhook.kube.workloads.pod_set import pod_name


def described(content: dict[str, Any]) -> list[tuple[str, str, int | None, str]]:
    """Return path, role, number and first name of each set."""
    return [(each.path, each.role, each.replicas, pod_name(each.pod)) for each in sets_of(content)]


def test_the_cron_job_of_volcano_has_the_pods_of_its_job() -> None:
    spec = volcano({"name": "w", "replicas": 2, "template": TEMPLATE}, schedulerName="kai-scheduler")["spec"]
    content = workload("batch.volcano.sh/v1alpha1", "CronJob", {"jobTemplate": {"spec": spec}})

    assert described(content) == [("spec.jobTemplate.spec.tasks[0].template", "w", 2, "team-a/web-w-0")]
    assert sets_of(content)[0].pod["spec"]["schedulerName"] == "kai-scheduler"


def test_a_job_template_has_pods_and_a_job_flow_names_it() -> None:
    spec = volcano({"name": "w", "replicas": 2, "template": TEMPLATE})["spec"]

    assert [each.replicas for each in sets_of(workload("flow.volcano.sh/v1alpha1", "JobTemplate", spec))] == [2]
    assert sets_of(workload("flow.volcano.sh/v1alpha1", "JobFlow", {"flows": [{"name": "a"}]})) == ()

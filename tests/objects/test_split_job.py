"""An object whose templates go to two schedulers, because only some name a workload type."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.admission import TYPE, make_request, policy_with
from tests.support.objects.builders import make_pod
from tests.support.objects.workload_objects import workload
from tests.support.programs.cluster_files import as_list, write_cluster
from tests.support.programs.command import run_here
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.objects.admission import admit_request
from webhook.objects.split_job import ScheduledSet, split_job

LAUNCHER = make_pod("").requests(cpu="1")
WORKER = make_pod("").gpu(1).annotate(TYPE, "training")
ROLES = "spec.mpiReplicaSpecs"
SPLIT = (
    f"{ROLES}.Launcher.template: no {TYPE}, so its pods go to default-scheduler, and those of {ROLES}.Worker.template "
    f"to volcano: set {TYPE} or spec.schedulerName there, too"
)


def mpi_job(launcher: Any, worker: Any = WORKER) -> dict[str, Any]:
    roles = {"Launcher": launcher, "Worker": worker}
    return workload(
        "kubeflow.org/v2beta1",
        "MPIJob",
        {"mpiReplicaSpecs": {name: {"replicas": 1, "template": each.template()} for name, each in roles.items()}},
    )


def split_of(content: dict[str, Any], **spec: Any) -> list[str]:
    """Return the warnings about two schedulers for the user who creates `content`."""
    request = make_request(content, kind="MPIJob", group="kubeflow.org", resource="")
    return [each for each in admit_request(request, policy_with(**spec), None).warnings if "go to" in each]


def test_a_template_without_a_type_goes_to_another_scheduler() -> None:
    assert split_of(mpi_job(LAUNCHER)) == [SPLIT]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(mpi_job(LAUNCHER.annotate(TYPE, "training")), id="a type on both"),
        pytest.param(mpi_job(LAUNCHER.scheduler("volcano")), id="the same scheduler"),
        pytest.param(mpi_job(LAUNCHER.scheduler("other")), id="a scheduler that the user chose"),
        pytest.param(mpi_job(LAUNCHER, WORKER.annotate(TYPE, "inference")), id="a type without a scheduler"),
        pytest.param(mpi_job(LAUNCHER, LAUNCHER), id="no type"),
    ],
)
def test_one_scheduler_is_no_warning(content: dict[str, Any]) -> None:
    assert split_of(content) == []


def test_the_commands_print_it(tmp_path: Any) -> None:
    outcome = run_here("check", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(mpi_job(LAUNCHER)))

    assert f"{SPLIT}\n" in outcome.errors


@pytest.mark.parametrize(
    ("schedulers", "split"),
    [
        (("volcano", ""), ["two"]),
        (("volcano", "default-scheduler", ""), []),
        (("volcano", "kai-scheduler", ""), ["three"]),
        (("default-scheduler", ""), []),
        (("", "volcano", ""), ["one", "three"]),
    ],
)
def test_only_templates_that_no_type_shares_the_scheduler_with_are_split(
    schedulers: tuple[str, ...], split: list[str]
) -> None:
    """An empty scheduler is a template without a type, which goes to the default scheduler."""
    pods = next(iter(pod_sets(mpi_job(LAUNCHER), policy_with().kinds)))
    sets = [
        ScheduledSet(replace(pods, path=name), "training" if scheduler else "", scheduler or "default-scheduler")
        for name, scheduler in zip(("one", "two", "three"), schedulers, strict=False)
    ]

    assert [each.partition(":")[0] for each in split_job(sets, policy_with())] == split


@pytest.mark.parametrize("others", [("volcano", "volcano"), ("volcano", "kai-scheduler"), ("kai-scheduler", "volcano")])
def test_the_warning_names_the_first_template_that_goes_elsewhere(others: tuple[str, str]) -> None:
    pods = next(iter(pod_sets(mpi_job(LAUNCHER), policy_with().kinds)))
    typed = [
        ScheduledSet(replace(pods, path=f"typed-{number}"), "training", name) for number, name in enumerate(others)
    ]

    (found,) = split_job([ScheduledSet.as_written(pods), *typed], policy_with())

    assert f" and those of typed-0 to {others[0]}: " in found

"""Objects that create pods, in the offline commands."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.admission import TYPE
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.storage import available, make_pv, make_storage_class
from tests.support.objects.workload_objects import (
    TEMPLATE,
    apps,
    inference_service,
    jobset,
    kubeflow,
    leader_worker_set,
    ray_cluster_spec,
    volcano,
    workload,
)
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run
from webhook.cli.inputs.policies import PlacedPolicies
from webhook.cli.inputs.workloads import read_pods, with_claims_of
from webhook.cli.output.yaml_text import to_yaml
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document, parse
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_set import PolicySet

FOUR = make_pod().gpu(4).template()
TRAINING = make_pod().annotate(TYPE, "training").gpu(4).template()
TYPO = make_pod().annotate(TYPE, "trainning").template()
FOO = workload("example.com/v1", "FooJob", {"groups": [{"pod": TEMPLATE}]})


def _cluster(folder: Path, *gpus: int) -> Path:
    """Return a cluster file with a node of so many GPUs each."""
    path = folder / "cluster.json"
    path.write_text(
        as_list(*(make_node_object(f"n{n}", capacity={"nvidia.com/gpu": str(gpu)}) for n, gpu in enumerate(gpus)))
    )
    return path


def _check(run: Run, folder: Path, *objects: dict[str, Any], options: tuple[str, ...] = ()) -> Any:
    arguments = ("check", "-f", "-", "--cluster", _cluster(folder, 8, 8), "-o", "json", *options)
    return run(*arguments, stdin=as_list(*objects))


@pytest.mark.parametrize(
    ("options", "code", "begin"), [((), 0, "Warning: team-a/web: "), (("--strict",), 2, "Error: ")]
)
def test_an_unknown_field_is_a_warning_and_with_strict_an_error(
    run: Run, tmp_path: Path, options: tuple[str, ...], code: int, begin: str
) -> None:
    outcome = _check(run, tmp_path, apps("Deployment", template=FOUR | {"annotations": {}}), options=options)

    assert outcome.code == code
    assert outcome.errors.startswith(begin)
    assert 'unknown field "spec.template.annotations"' in outcome.errors


def test_unknown_fields_in_templates_of_other_kinds_are_reported(run: Run, tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"name": "c", "resources": {"nvidia.com/gpu": 1}}]}}
    job = volcano({"name": "w", "replicas": 1, "template": template, "odd": 1})
    component = inference_service(odd=1, **template["spec"])
    outcome = _check(run, tmp_path, job, component)

    where = "spec.tasks[0].template.spec.containers[0].resources.nvidia.com/gpu"
    assert outcome.errors == f'Warning: team-a/web: unknown field "{where}"\n'


def test_a_controller_can_add_the_name_and_the_image_of_a_container(run: Run, tmp_path: Path) -> None:
    component = inference_service(containers=[{"resources": {"limits": {"nvidia.com/gpu": "1"}}}])

    assert _check(run, tmp_path, component).code == 0


@pytest.mark.parametrize("pod", [make_pod("p"), make_pod("p").annotate(TYPE, "training")], ids=["untyped", "typed"])
def test_a_mistyped_resource_is_named_once(run: Run, tmp_path: Path, pod: PodBuilder) -> None:
    outcome = _check(run, tmp_path, pod.gpu(1, "nvidia.com/gpus").obj())

    meant = "resource nvidia.com/gpus is not that of an accelerator of the policy; did you mean nvidia.com/gpu?"
    assert outcome.errors.count(meant) == 1


def test_replicas_are_counted_one_after_the_other(run: Run, tmp_path: Path) -> None:
    outcome = _check(run, tmp_path, apps("Deployment", replicas=6, template=FOUR))

    (line,) = lines(outcome.output)
    assert outcome.code == 3
    assert (line["pod"], line["object"], line["role"]) == ("team-a/web-", "Deployment team-a/web", "")
    assert (line["replicas"], line["fits"], line["isComplete"]) == (6, 4, True)
    assert line["replicasByNode"] == {"n0": 2, "n1": 2}
    assert (line["verdict"], line["message"]) == (
        "Waiting",
        (
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. "
            "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
        ),
    )


def test_replicas_that_all_fit_are_feasible(run: Run, tmp_path: Path) -> None:
    outcome = _check(run, tmp_path, apps("Deployment", replicas=4, template=FOUR))

    (line,) = lines(outcome.output)
    assert (outcome.code, line["verdict"], line["fits"], line["nodes"]["feasible"]) == (0, "Feasible", 4, 2)


def test_text_says_how_many_replicas_fit_and_where(run: Run, tmp_path: Path) -> None:
    deployment = apps("Deployment", replicas=6, template=FOUR)
    outcome = run("check", "-f", "-", "--cluster", _cluster(tmp_path, 8, 4), stdin=as_list(deployment, jobset()))

    assert outcome.output.startswith(
        "team-a/web-: Waiting\n"
        "  Deployment team-a/web: 3 of 6 replicas fit now (2 on n0, 1 on n1)\n"
        "  0 of 2 nodes can take it\n"
    )
    assert "  JobSet team-a/web, node: 6 of 6 replicas fit now (" in outcome.output
    assert outcome.output.endswith("2 pod templates: 1 Feasible, 1 Waiting\n")


def test_nodes_of_equally_many_replicas_are_in_the_order_of_their_names(run: Run, tmp_path: Path) -> None:
    # The first replica gets the node with the most CPU.
    sizes = {"a": (4, 1), "m": (8, 2), "z": (4, 64)}
    nodes = [make_node_object(name, capacity={"nvidia.com/gpu": gpu, "cpu": cpu}) for name, (gpu, cpu) in sizes.items()]
    (tmp_path / "cluster.json").write_text(as_list(*nodes))
    deployment = apps("Deployment", replicas=5, template=FOUR)
    outcome = run("check", "-f", "-", "--cluster", tmp_path / "cluster.json", stdin=as_list(deployment))

    assert "4 of 5 replicas fit now (2 on m, 1 on a, 1 on z)\n" in outcome.output


def test_a_pod_has_the_keys_it_always_had(run: Run, tmp_path: Path) -> None:
    (line,) = lines(_check(run, tmp_path, make_pod().obj()).output)

    keys = ["pod", "verdict", "node", "nodes", "message", "scores", "suggestions", "unmodelled", "qosClass"]
    assert list(line) == keys


def test_a_pod_in_a_wrapper_is_evaluated_beside_the_other_objects_in_it(run: Run, tmp_path: Path) -> None:
    inner = [{**make_pod("p").gpu(4).obj(), "apiVersion": "v1", "kind": "Pod"}, apps("Deployment", template=FOUR)]
    components = [{"template": each} for each in inner]

    wrapper = workload("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": components})

    outcome = _check(run, tmp_path, wrapper)

    assert [each["pod"] for each in lines(outcome.output)] == ["team-a/p", "team-a/web-"]


def test_sets_of_one_object_share_the_cluster_and_objects_do_not(run: Run, tmp_path: Path) -> None:
    job = volcano({"name": "ps", "replicas": 1, "template": FOUR}, {"name": "worker", "replicas": 4, "template": FOUR})

    outcome = _check(run, tmp_path, job, job)

    found = [(line["pod"], line["role"], line["fits"], line["replicas"]) for line in lines(outcome.output)]
    assert found == [("team-a/web-ps-0", "ps", 1, 1), ("team-a/web-worker-0", "worker", 3, 4)] * 2


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (apps("StatefulSet", replicas=2), [("team-a/web-0", "", 2)]),
        (
            kubeflow("PyTorchJob", "pytorchReplicaSpecs", Master=1, Worker=3),
            [("team-a/web-master-0", "Master", 1), ("team-a/web-worker-0", "Worker", 3)],
        ),
        (
            workload("ray.io/v1", "RayCluster", ray_cluster_spec()),
            [("team-a/web-head", "head", 1), ("team-a/web-gpu-worker-", "gpu", 4)],
        ),
        (jobset(), [("team-a/web-node-0-0-", "node", 6)]),
        (leader_worker_set(), [("team-a/web-0", "leader", 2), ("team-a/web-0-1", "worker", 4)]),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_every_kind_gives_its_pods(
    run: Run, tmp_path: Path, content: dict[str, Any], wanted: list[tuple[str, str, int]]
) -> None:
    outcome = _check(run, tmp_path, content)

    assert outcome.code == 0
    assert [(line["pod"], line["role"], line["fits"]) for line in lines(outcome.output)] == wanted


def test_a_daemon_set_makes_a_pod_on_each_node(run: Run, tmp_path: Path) -> None:
    outcome = _check(run, tmp_path, apps("DaemonSet"))
    (line,) = lines(outcome.output)
    text = run("check", "-f", "-", "--cluster", _cluster(tmp_path, 8), stdin=as_list(apps("DaemonSet"))).output

    assert (line["replicas"], line["fits"], line["verdict"]) == (None, None, "Feasible")
    assert "  DaemonSet team-a/web: a pod on each node\n" in text


def test_nodes_that_only_the_replicas_hold_do_not_fit_once_running_pods_are_gone(run: Run, tmp_path: Path) -> None:
    cluster, other = tmp_path / "two.json", make_pod("other").node_name("busy").gpu(8)
    nodes = [make_node_object(name, capacity={"nvidia.com/gpu": "8"}) for name in ("busy", "free")]
    cluster.write_text(as_list(*nodes, other.obj()))
    deployment = apps("Deployment", replicas=2, template=make_pod("web").gpu(8).template())

    text = run("check", "-f", "-", "--cluster", cluster, stdin=as_list(deployment)).output

    assert "would fit if running pods were gone: busy\n" in text


@pytest.mark.parametrize("own", [{}, {"maip.mxsf.io/gpu-product": "NVIDIA-H20"}])
def test_a_pod_without_a_type_is_suggested_a_type_alone(run: Run, tmp_path: Path, own: dict[str, str]) -> None:
    """The smallest change that makes it fit, which leaves the product that the user named."""
    cluster = tmp_path / "pools.json"
    nodes = (("t", "training", "NVIDIA-H20"), ("i", "inference", "NVIDIA-L40S"))
    cluster.write_text(
        as_list(
            *(
                make_node_object(
                    name,
                    labels={"maip.mxsf.io/node.usage": usage, "nvidia.com/gpu.product": product},
                    taints=[
                        f"maip.mxsf.io/node.usage={usage}:NoSchedule",
                        f"nvidia.com/gpu.product={product}:NoSchedule",
                    ],
                    capacity={"nvidia.com/gpu": "8"},
                )
                for name, usage, product in nodes
            )
        )
    )
    pod = make_pod("untyped").gpu(1)
    for key, value in own.items():
        pod = pod.annotate(key, value)

    (line,) = lines(run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(pod.obj())).output)

    assert line["suggestions"][0] == "set maip.mxsf.io/workload-type: training: 1 node would fit"


@pytest.mark.slow
def test_a_million_replicas_are_counted_up_to_a_limit(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "big.json"
    cluster.write_text(as_list(make_node_object("n", capacity={"pods": "100000"})))
    deployment = apps("Deployment", replicas=1_000_000, template={"spec": {"containers": [{"name": "c"}]}})

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(deployment))

    (line,) = lines(outcome.output)
    assert (outcome.code, line["verdict"], line["fits"], line["isComplete"]) == (3, "Unknown", 1000, False)
    assert line["message"] == "at least 1000 of 1000000 replicas fit now"


def test_replicas_are_placed_as_the_webhook_admits_them(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "pool.json"
    usage = {"maip.mxsf.io/node.usage": "training"}
    node = make_node_object(
        "t", labels=usage, taints=["maip.mxsf.io/node.usage=training:NoSchedule"], capacity={"nvidia.com/gpu": "8"}
    )
    cluster.write_text(as_list(node))
    job = kubeflow("PyTorchJob", "pytorchReplicaSpecs", Worker=3)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"] = TRAINING
    arguments = ("check", "-f", "-", "--cluster", cluster, "-o", "json")

    (as_written,) = lines(run(*arguments, "--as-written", stdin=as_list(job)).output)
    (admitted,) = lines(run(*arguments, stdin=as_list(job)).output)

    assert (as_written["fits"], as_written["verdict"]) == (0, "Infeasible")
    assert (admitted["fits"], admitted["verdict"]) == (2, "Infeasible")
    assert as_written["suggestions"][0].startswith("leave --as-written out")


@pytest.mark.parametrize("command", ["mutate", "check"])
@pytest.mark.parametrize("beside", [True, False], ids=["beside a pod", "alone"])
def test_a_kind_that_is_not_known_is_code_2(run: Run, tmp_path: Path, command: str, beside: bool) -> None:
    objects = [make_pod().obj(), FOO] if beside else [FOO]
    options = ("--cluster", _cluster(tmp_path, 8)) if command == "check" else ()

    outcome = run(command, "-f", "-", *options, stdin=as_list(*objects))

    assert (outcome.code, bool(outcome.output)) == (2, beside)
    assert (
        f'Error: <stdin>: items[{len(objects) - 1}]: kind: Invalid value: "FooJob"; is not a known kind; describe it '
        "in the policy: spec.workloadKinds: [{group: example.com, kind: FooJob, resource: foojobs, templates: "
        "[{path: spec.groups.*.pod}]}]\n"
    ) in outcome.errors


def test_the_advice_for_a_kind_that_is_not_known_works(run: Run, tmp_path: Path) -> None:
    errors = run("mutate", "-f", "-", stdin=as_list(FOO)).errors
    advice = errors.partition("spec.workloadKinds: ")[2]
    policy = tmp_path / "policy.yaml"
    head = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\nspec:\n  workloadKinds: "
    policy.write_text(head + advice)

    outcome = run("mutate", "-f", "-", "-o", "json", "--policy", policy, stdin=as_list(FOO))

    (pod,) = lines(outcome.output)
    assert (outcome.code, pod["metadata"]["generateName"]) == (0, "web-0-")


def test_a_kind_that_holds_no_template_is_advised_to_be_listed_as_such(run: Run, tmp_path: Path) -> None:
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    refused = run("mutate", "-f", "-", stdin=as_list(widget, make_pod().obj()))
    assert refused.code == 2
    advice = refused.errors.partition("spec.workloadKinds: ")[2].partition(";")[0]
    policy = tmp_path / "policy.yaml"
    head = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\nspec:\n  workloadKinds: "
    policy.write_text(head + advice)

    outcome = run("mutate", "-f", "-", "-o", "json", "--policy", policy, stdin=as_list(widget, make_pod().obj()))

    assert (outcome.code, len(lines(outcome.output))) == (0, 1)
    assert "passed over, because they make no pod: 1 Widget\n" in outcome.errors


def test_kinds_of_everyday_manifests_that_make_no_pod_are_passed_over(run: Run) -> None:
    kinds = [
        *(
            ("v1", kind)
            for kind in ("Service", "ConfigMap", "Secret", "Namespace", "ServiceAccount", "PersistentVolume")
        ),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("networking.k8s.io/v1", "Ingress"),
        ("policy/v1", "PodDisruptionBudget"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("monitoring.coreos.com/v1", "ServiceMonitor"),
        ("scheduling.volcano.sh/v1beta1", "Queue"),
    ]
    objects = [{"apiVersion": version, "kind": kind, "metadata": {"name": "a"}} for version, kind in kinds]

    outcome = run("mutate", "-f", "-", "-o", "json", stdin=as_list(*objects, make_pod().obj()))

    assert (outcome.code, len(lines(outcome.output))) == (0, 1)
    (line,) = (line for line in outcome.errors.splitlines() if line.startswith("passed over"))
    assert line.partition(": ")[2].split(", ") == sorted(f"1 {kind}" for _, kind in kinds)


def test_a_prometheus_creates_pods_and_is_not_passed_over(run: Run) -> None:
    outcome = run("mutate", "-f", "-", stdin=as_list(workload("monitoring.coreos.com/v1", "Prometheus", {})))

    assert (outcome.code, outcome.output) == (2, "")


TRAIN_JOB = workload("trainer.kubeflow.org/v1alpha1", "TrainJob", {"runtimeRef": {"name": "torch"}})


def test_pods_that_are_not_in_the_object_are_unknown(run: Run, tmp_path: Path) -> None:
    outcome = _check(run, tmp_path, TRAIN_JOB)

    (line,) = lines(outcome.output)
    assert (outcome.code, line["verdict"], line["object"]) == (3, "Unknown", "TrainJob team-a/web")
    assert line["message"].startswith("the pods of a TrainJob come from the runtime that spec.runtimeRef names")


def test_pods_that_are_not_in_the_object_cannot_be_mutated(run: Run) -> None:
    outcome = run("mutate", "-f", "-", "-o", "json", stdin=as_list(TRAIN_JOB, make_pod().obj()))

    assert (outcome.code, len(lines(outcome.output))) == (2, 1)
    assert "Error: <stdin>: items[0]: TrainJob team-a/web: the pods of a TrainJob come from" in outcome.errors


def test_a_model_gets_no_verdict_but_its_annotations_are_checked(run: Run, tmp_path: Path) -> None:
    model = {"modelFormat": {"name": "huggingface"}, "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    good = inference_service(model=model, annotations={TYPE: "inference"})
    bad = inference_service(model=model, annotations={TYPE: "inferrence"})

    outcome = _check(run, tmp_path, good, bad, options=("--mutate",))

    first, second = lines(outcome.output)
    assert (outcome.code, first["verdict"], second["verdict"]) == (5, "Unknown", "Refused")
    assert "serving runtime" in first["message"]
    assert f"spec.predictor.annotations[{TYPE}]: Unsupported value" in second["message"]


def test_a_mistyped_annotation_of_a_notebook_is_named_on_the_notebook(run: Run) -> None:
    notebook = workload(
        "kubeflow.org/v1", "Notebook", {"template": {"spec": TEMPLATE["spec"]}}, annotations={TYPE: "x"}
    )

    outcome = run("mutate", "-f", "-", stdin=as_list(notebook))

    assert outcome.code == 5
    assert outcome.errors.startswith(f"Refused: <stdin>: items[0]: team-a/web-0: metadata.annotations[{TYPE}]")


@pytest.mark.parametrize("command", ["mutate", "check"])
def test_annotations_on_an_object_instead_of_its_templates_are_a_warning(
    run: Run, tmp_path: Path, command: str
) -> None:
    on_object = apps("Deployment") | {"metadata": {"name": "web", "annotations": {TYPE: "training"}}}
    roles = jobset() | {"metadata": {"name": "roles", "annotations": {TYPE: "training"}}}
    notebook = workload(
        "kubeflow.org/v1", "Notebook", {"template": {"spec": TEMPLATE["spec"]}}, annotations={TYPE: "training"}
    )
    options = ("--cluster", str(_cluster(tmp_path, 8))) if command == "check" else ()

    outcome = run(command, "-f", "-", *options, stdin=as_list(on_object, roles, notebook))

    path = "template.metadata.annotations"
    in_job_set = f"spec.replicatedJobs[0].template.spec.{path}"
    assert [line for line in outcome.errors.splitlines() if line.startswith("Warning: ") and "itself" in line] == [
        f"Warning: default/web: {TYPE} has no effect on the Deployment itself: its pods read spec.{path}",
        f"Warning: default/roles: {TYPE} has no effect on the JobSet itself: its pods read {in_job_set}",
    ]


def test_yaml_says_which_pod_of_which_object_it_shows(run: Run) -> None:
    outcome = run("mutate", "-f", "-", stdin=as_list(jobset(), apps("Deployment"), apps("DaemonSet")))

    comments = [line for line in outcome.output.splitlines() if line.startswith("#")]
    assert comments == [
        "# JobSet team-a/web, node: the first of 6 pods",
        "# Deployment team-a/web: the only pod",
        "# DaemonSet team-a/web: a pod on each node",
    ]
    assert len(parse(outcome.output, "out")) == 3


def test_every_template_of_several_files_and_documents_is_refused_by_name(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.json"
    first.write_text(f"{to_yaml(apps('Deployment', template=TYPO))}---\n{to_yaml(apps('StatefulSet', template=TYPO))}")
    second.write_bytes(orjson.dumps(volcano({"name": "ps", "template": TYPO})))

    outcome = run("mutate", "-f", first, "-f", second)

    places = [line.split(": metadata")[0] for line in outcome.errors.splitlines()]
    assert outcome.code == 5
    assert places == [
        f"Refused: {first}, document 1: spec.template: team-a/web-",
        f"Refused: {first}, document 2: spec.template: team-a/web-0",
        f"Refused: {second}: spec.tasks[0].template: team-a/web-ps-0",
    ]


def test_objects_that_cannot_be_read_are_all_named(run: Run) -> None:
    objects = [apps("Deployment", replicas="many"), FOO, volcano({"template": 7})]

    outcome = run("mutate", "-f", "-", stdin=as_list(*objects))

    assert outcome.code == 2
    for place in ("items[0]: spec.replicas", "items[1]: kind", "items[2]: spec.tasks[0].template"):
        assert f"<stdin>: {place}: Invalid value" in outcome.errors


def test_claims_of_a_stateful_set_are_evaluated_as_they_will_be_created(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    volume = available(make_pv("disk", "local", on={"kubernetes.io/hostname": ["b"]}))
    storage_class = make_storage_class("local", provisioner="kubernetes.io/no-provisioner")
    cluster.write_text(as_list(make_node_object("a"), make_node_object("b"), volume, storage_class))
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "local",
    }
    content = apps("StatefulSet", replicas=2, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}])
    arguments = ("check", "-f", "-", "--cluster", cluster, "-o", "json")

    outcome = run(*arguments, stdin=as_list(content))

    (line,) = lines(outcome.output)
    assert (outcome.code, line["fits"], line["replicasByNode"]) == (3, 1, {"b": 1})
    assert line["message"] == (
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_the_running_pods_of_an_object_count_as_gone(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    running = [
        make_pod(name).namespace("team-a").label("app", "web").gpu(4).node_name("a").obj() for name in ("x", "y")
    ]
    cluster.write_text(as_list(make_node_object("a", capacity={"nvidia.com/gpu": 8}), *running))
    arguments = ("check", "-f", "-", "--cluster", cluster)
    selector = {"matchLabels": {"app": "web"}}
    content = apps("Deployment", replicas=2, template=FOUR, selector=selector, strategy={"type": "Recreate"})
    other = apps("Deployment", replicas=2, template=FOUR, selector={"matchLabels": {"app": "other"}})

    text = run(*arguments, stdin=as_list(content))
    own, others = lines(run(*arguments, "-o", "json", stdin=as_list(content, other)).output)

    assert "2 of 2 replicas fit now (2 on a); the 2 running pods of the object count as gone" in text.output
    assert [(each["verdict"], each["replaced"]) for each in (own, others)] == [("Feasible", 2), ("Waiting", 0)]


def test_a_suspended_object_says_that_it_creates_no_pods_now(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(make_node_object("a")))
    content = as_list(apps("Deployment", replicas=2, paused=True))

    text = run("check", "-f", "-", "--cluster", cluster, stdin=content)
    (line,) = lines(run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=content).output)

    assert (text.code, line["verdict"], line["fits"], line["suspended"]) == (0, "Feasible", 2, True)
    assert "2 of 2 replicas fit now (2 on a); no pods are created while spec.paused is set" in text.output


@pytest.mark.parametrize("command", ["check", "mutate"])
def test_a_claim_that_cannot_be_read_is_named(run: Run, tmp_path: Path, command: str) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(make_node_object("a"), make_storage_class("local")))
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": 7}}
    content = apps("StatefulSet", volumeClaimTemplates=[template])

    outcome = run(command, "-f", "-", "--cluster", cluster, stdin=as_list(content))

    assert (outcome.code, "Feasible" in outcome.output) == (2, False)
    assert "<stdin>: items[0]: spec.volumeClaimTemplates: spec.accessModes: Invalid value: 7" in outcome.errors


def test_a_ray_job_without_a_pod_of_its_own_is_unknown_and_no_error(run: Run, tmp_path: Path) -> None:
    spec = {"clusterSelector": {"ray.io/cluster": "shared"}, "submissionMode": "HTTPMode"}

    outcome = _check(run, tmp_path, workload("ray.io/v1", "RayJob", spec))

    (line,) = lines(outcome.output)
    assert (outcome.code, line["verdict"]) == (3, "Unknown")
    assert line["message"] == "this RayJob runs on the RayCluster that spec.clusterSelector names; check that object"


@pytest.mark.parametrize(
    ("strategy", "verdict"),
    [
        ({}, "Waiting"),
        ({"type": "Recreate"}, "Feasible"),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, "Feasible"),
    ],
    ids=["the default", "Recreate", "an old pod ends first"],
)
def test_a_rolling_update_that_cannot_start_beside_the_running_pods_waits(
    run: Run, tmp_path: Path, strategy: dict[str, Any], verdict: str
) -> None:
    eight = make_pod("old").namespace("team-a").label("app", "llm").gpu(8)
    cluster = tmp_path / "cluster.json"
    node = make_node_object("n0", capacity={"nvidia.com/gpu": "8"})
    cluster.write_text(as_list(node, eight.spec(nodeName="n0").obj() | {"status": {"phase": "Running"}}))
    template = make_pod().label("app", "llm").gpu(8).template()
    update = apps("Deployment", template=template, selector={"matchLabels": {"app": "llm"}}, strategy=strategy)

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(update))

    (line,) = lines(outcome.output)
    assert (line["verdict"], line["fits"]) == (verdict, 1)
    assert line["message"].startswith("the rolling update cannot start") == (verdict == "Waiting")
    assert any(each.startswith("maxUnavailable is 0") for each in line["suggestions"]) == (verdict == "Waiting")


@pytest.mark.parametrize(
    ("cards", "status", "verdict"),
    [
        pytest.param(16, {"phase": "Running"}, "Feasible", id="room beside the running pod"),
        pytest.param(8, {"phase": "Pending"}, "Waiting", id="no room beside its own pod that waits"),
        pytest.param(16, {"phase": "Pending"}, "Feasible", id="room beside its own pod that waits"),
    ],
)
def test_a_rolling_update_starts_where_a_new_pod_has_room_beside_the_old_ones(
    run: Run, tmp_path: Path, cards: int, status: dict[str, Any], verdict: str
) -> None:
    old = make_pod("old").namespace("team-a").label("app", "llm").gpu(8)
    is_running = status["phase"] == "Running"
    cluster = tmp_path / "cluster.json"
    node = make_node_object("n0", capacity={"nvidia.com/gpu": cards})
    cluster.write_text(as_list(node, (old.node_name("n0") if is_running else old.uid("u")).obj() | {"status": status}))
    template = make_pod().label("app", "llm").gpu(8).template()
    update = apps("Deployment", template=template, selector={"matchLabels": {"app": "llm"}})

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(update))

    (line,) = lines(outcome.output)
    assert (line["verdict"], line["replaced"]) == (verdict, int(is_running))
    assert line["message"].startswith("the rolling update cannot start") == (verdict == "Waiting")
    assert any(each.startswith("maxUnavailable is 0") for each in line["suggestions"]) == (verdict == "Waiting")


@pytest.mark.parametrize(
    ("replicas", "most", "names"),
    [
        (5, 2, ["data-web-0", "data-web-1"]),
        (1, 2, ["data-web-0"]),
        (2, 2, ["data-web-0", "data-web-1"]),
        (0, 2, ["data-web-0"]),
    ],
)
def test_claims_are_planned_for_the_first_pods_up_to_a_number_and_for_one_at_least(
    replicas: int, most: int, names: list[str]
) -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {}}}
    template = make_pod().label("app", "web").template()
    fields = {"selector": {"matchLabels": {"app": "web"}}, "volumeClaimTemplates": [claim], "replicas": replicas}
    content = apps("StatefulSet", template=template, **fields)
    (found,), _ = read_pods([Document("f", content)], PlacedPolicies(PolicySet(built_in_policy())))
    base = Snapshot.of(())
    base = replace(base, storage=replace(base.storage, claims={}))

    planned = with_claims_of(found, base, most)

    assert [name for _, name in planned.storage.claims or ()] == names


def test_a_new_object_that_waits_is_not_about_old_pods(run: Run, tmp_path: Path) -> None:
    other = make_pod("other").namespace("team-a").label("app", "other").gpu(8).node_name("n0")
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(make_node_object("n0", capacity={"nvidia.com/gpu": 8}), other))
    template = make_pod().label("app", "llm").gpu(8).template()
    new = apps("Deployment", template=template, selector={"matchLabels": {"app": "llm"}})

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(new))

    (line,) = lines(outcome.output)
    assert (line["verdict"], line["replaced"]) == ("Waiting", 0)
    assert not any(each.startswith("maxUnavailable is 0") for each in line["suggestions"])


@pytest.mark.parametrize(("name", "verdict", "count"), [("own", "Feasible", 1), ("new", "Waiting", 0)])
def test_the_running_pod_of_the_name_of_a_pod_counts_as_gone(
    run: Run, tmp_path: Path, name: str, verdict: str, count: int
) -> None:
    running = make_pod("own").gpu(8)
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(make_node_object("n0", capacity={"nvidia.com/gpu": 8}), running.node_name("n0")))
    given = ("check", "-f", "-", "--cluster", cluster)
    pod = as_list(make_pod(name).gpu(8))

    text, (line,) = run(*given, stdin=pod), lines(run(*given, "-o", "json", stdin=pod).output)

    assert line["verdict"] == verdict
    assert ("the running pod of this name counts as gone" in text.output) is bool(count)

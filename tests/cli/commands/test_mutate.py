"""`mutate`: print pods as the webhook would admit them."""

import gc
import re
from pathlib import Path
from typing import Any

import click
import jsonpatch
import orjson
import pytest

from tests.support.admission import TYPE, admit_pod
from tests.support.objects.builders import make_pod
from tests.support.programs.cluster_files import MISTYPED, PLAIN, TRAINING, as_list, documents, lines, write_cluster
from tests.support.programs.command import Run
from webhook.admission.cluster_view import ClusterView
from webhook.admission.verdict import Allowed
from webhook.cli.output.yaml_text import to_yaml
from webhook.cli.predictions.admission import admitted_pod
from webhook.documents.documents import Document
from webhook.kube.api.json_patch import patched
from webhook.kube.workloads.pod_set import pod_name

OTHER = make_pod("other").annotate(TYPE, "inference")


def admitted(pod: dict[str, Any]) -> dict[str, Any]:
    verdict = admit_pod(pod)
    assert verdict.outcome == "Patched"
    return patched(pod, verdict.operations)


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_the_pods_are_printed_as_admitted_in_their_order(run: Run, output: str) -> None:
    outcome = run("mutate", "-f", "-", "-o", output, stdin=as_list(TRAINING, PLAIN, OTHER))

    assert outcome.code == 0
    found = documents(outcome.output) if output == "yaml" else lines(outcome.output)
    assert found == [admitted(TRAINING.obj()), PLAIN.obj(), admitted(OTHER.obj())]


def test_yaml_is_the_default_with_documents_apart(run: Run) -> None:
    outcome = run("mutate", "-f", "-", stdin=as_list(TRAINING, OTHER))

    assert outcome.output.startswith("apiVersion: v1\nkind: Pod\nmetadata:\n  name: trainer\n")
    assert outcome.output.count("\n---\n") == 1
    assert outcome.output.endswith("\n")


def test_a_patch_turns_each_pod_into_the_admitted_one(run: Run) -> None:
    outcome = run("mutate", "-f", "-", "-o", "patch", stdin=as_list(TRAINING, PLAIN, OTHER))

    first, second, third = lines(outcome.output)
    assert jsonpatch.apply_patch(TRAINING.obj(), first) == admitted(TRAINING.obj())
    assert second == []
    assert jsonpatch.apply_patch(OTHER.obj(), third) == admitted(OTHER.obj())


def test_a_diff_shows_only_the_changes(run: Run) -> None:
    outcome = run("mutate", "-f", "-", "-o", "diff", stdin=as_list(TRAINING, PLAIN))

    lines = outcome.output.splitlines()
    assert lines[:2] == ["--- team-a/trainer (as written)", "+++ team-a/trainer (admitted)"]
    assert "+  schedulerName: volcano" in lines
    assert [line for line in lines[2:] if line.startswith("-")] == []
    assert "web" not in outcome.output


@pytest.mark.parametrize(
    ("owner", "place"),
    [
        ({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": TRAINING.template()}}, "spec.template"),
        ({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": TRAINING.template()}}, "spec.template"),
        (
            {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "spec": {"jobTemplate": {"spec": {"template": TRAINING.template()}}},
            },
            "spec.jobTemplate.spec.template",
        ),
        (
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "spec": {"tasks": [{"name": "worker", "template": TRAINING.template()}]},
            },
            "spec.tasks[0].template",
        ),
    ],
    ids=["Deployment", "Job", "CronJob", "Volcano Job"],
)
def test_a_template_stands_for_its_pods(run: Run, owner: dict[str, Any], place: str) -> None:
    owner = owner | {"metadata": {"name": "train", "namespace": "team-a"}}

    outcome = run("mutate", "-f", "-", stdin=to_yaml(owner))

    (pod,) = documents(outcome.output)
    assert (outcome.code, pod["kind"]) == (0, "Pod")
    assert pod_name(pod).startswith("team-a/train-")
    assert pod["spec"]["schedulerName"] == "volcano"

    broken = to_yaml(owner).replace("training", "trainning")
    refused = run("mutate", "-f", "-", stdin=broken)
    assert (refused.code, refused.output) == (5, "")
    assert refused.errors.startswith(f"Refused: <stdin>: {place}: {pod_name(pod)}: metadata.annotations[{TYPE}]")


def test_a_pod_of_a_daemon_set_is_bypassed(run: Run) -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d"},
        "spec": {"template": TRAINING.template()},
    }

    outcome = run("mutate", "-f", "-", "-o", "patch", stdin=to_yaml(owner))

    assert (outcome.code, outcome.output) == (0, "[]\n")
    assert outcome.errors == "default/d-: left alone: pod of a DaemonSet\n"


def test_a_bypassed_pod_is_printed_unchanged_with_the_reason(run: Run) -> None:
    outcome = run("mutate", "-f", "-", stdin=as_list(PLAIN))

    assert outcome.code == 0
    assert documents(outcome.output) == [PLAIN.obj()]
    assert outcome.errors == "default/web: left alone: no workload type\n"


def test_an_object_that_makes_no_pod_is_reported(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(f"apiVersion: v1\nkind: Service\n---\n{to_yaml(TRAINING.obj())}")

    outcome = run("mutate", "-f", path)

    assert outcome.code == 0
    assert len(documents(outcome.output)) == 1
    assert outcome.errors == "passed over, because they make no pod: 1 Service\n"


def test_several_files_are_read_in_their_order(run: Run, tmp_path: Path) -> None:
    for name, pod in (("b.yaml", TRAINING), ("a.json", PLAIN)):
        (tmp_path / name).write_text(as_list(pod))

    outcome = run("mutate", "-f", tmp_path / "b.yaml", "--filename", tmp_path / "a.json", "-o", "json")

    assert [pod["metadata"]["name"] for pod in lines(outcome.output)] == ["trainer", "web"]


def test_a_denied_pod_is_code_5_and_the_others_are_printed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(f"{to_yaml(MISTYPED.obj())}---\n{to_yaml(TRAINING.obj())}")

    outcome = run("mutate", "-f", path)

    assert outcome.code == 5
    assert [pod["metadata"]["name"] for pod in documents(outcome.output)] == ["trainer"]
    assert not outcome.output.startswith("---")
    assert outcome.errors == (
        f"Refused: {path}, document 1: default/oops: metadata.annotations[{TYPE}]: Unsupported value: "
        '"trainning"; supported values: "inference", "training"\n'
    )


def test_a_patch_is_on_the_line_of_its_pod_if_another_is_denied(run: Run) -> None:
    outcome = run("mutate", "-f", "-", "-o", "patch", stdin=as_list(MISTYPED, TRAINING))
    refused, patch = lines(outcome.output)
    assert (outcome.code, refused) == (5, None)
    assert patch


def test_warnings_go_to_standard_error_alone(run: Run) -> None:
    pod = TRAINING.annotate("maip.mxsf.io/queue", "night").annotate("maip.mxsf.io/scheduler", "default-scheduler").obj()

    outcome = run("mutate", "-f", "-", "-o", "patch", stdin=as_list(pod))

    assert (outcome.code, len(lines(outcome.output))) == (0, 1)
    assert outcome.errors == (
        "Warning: team-a/trainer: maip.mxsf.io/queue has no effect: scheduler default-scheduler has no queues\n"
    )


def test_a_policy_file_is_used(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: mine}\n"
        "spec: {workloadTypes: {batch: {nodeUsage: {allow: [spot]}}}}\n"
    )

    outcome = run("mutate", "-f", "-", "--policy", policy, stdin=as_list(make_pod().annotate(TYPE, "batch")))

    (pod,) = documents(outcome.output)
    assert outcome.code == 0
    assert pod["spec"]["tolerations"][0]["value"] == "spot"
    assert pod["metadata"]["annotations"]["maip.mxsf.io/placement-policy"].startswith("mine@")


def test_a_cluster_file_gives_defaults_and_the_check(run: Run, tmp_path: Path) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "annotations": {TYPE: "training"}}}
    cluster = write_cluster(tmp_path, namespace)

    outcome = run("mutate", "-f", "-", "--cluster", cluster, stdin=as_list(make_pod("a").namespace("ml").gpu(16)))

    (pod,) = documents(outcome.output)
    assert (outcome.code, pod["spec"]["schedulerName"]) == (0, "volcano")
    assert outcome.errors.startswith("Warning: ml/a: placement check: Infeasible: 0/2 nodes are unavailable: ")


def test_a_pod_that_the_check_denies_is_code_5(run: Run, tmp_path: Path) -> None:
    pod = TRAINING.gpu(16).annotate("maip.mxsf.io/placement-check", "deny")

    outcome = run("mutate", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(pod))

    assert (outcome.code, outcome.output) == (5, "")
    assert (
        "Refused: <stdin>: items[0]: team-a/trainer: no node of this cluster can take this pod as it is: "
        in outcome.errors
    )


POD = "apiVersion: v1\nkind: Pod\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: b: c\n", 'pods.yaml:1:5: Invalid value: "a: b: c"; must be YAML or JSON: ', id="no YAML"),
        pytest.param('{"kind": "Pod"', "pods.yaml:2:1: Invalid value: ", id="JSON that is broken is read as YAML"),
        pytest.param("a: 1\na: 2\n", "pods.yaml:2:1: Invalid value: ", id="a key twice"),
        pytest.param(b"\xff", 'pods.yaml: Invalid value: ""; must be YAML or JSON in UTF-8: ', id="no UTF-8"),
        pytest.param("words\n", 'pods.yaml: Invalid value: "words"; must be an object', id="text"),
        pytest.param("metadata: {}\n", "pods.yaml: kind: Required value", id="no kind"),
        pytest.param(POD, "pods.yaml: metadata: Required value: a Pod has one", id="no metadata"),
        pytest.param(
            f"{POD}metadata: {{}}\nspec: {{}}\n---\n{POD}metadata: {{labels: {{a: 8}}}}\nspec: {{}}\n",
            "pods.yaml, document 2: metadata.labels[a]: Invalid value: 8; must be text; put it in quotes",
            id="a number as label",
        ),
        pytest.param(
            f"{POD}metadata: {{annotations: {{{TYPE}: training}}}}\nspec: {{nodeSelector: {{1.5: a}}}}\n",
            "pods.yaml:",
            id="a float as key",
        ),
        pytest.param(
            f"{POD}metadata: {{annotations: {{{TYPE}: off}}}}\n",
            f"pods.yaml: metadata.annotations[{TYPE}]: Invalid value: false; must be text",
            id="a boolean of YAML 1.1 as annotation",
        ),
        pytest.param(
            f"{POD}metadata: {{annotations: {{{TYPE}: training}}}}\n"
            "spec: {containers: [{name: a, resources: {requests: {cpu: lots}}}]}\n",
            "pods.yaml: spec.containers[0].resources.requests[cpu]: Invalid value: ",
            id="a quantity that is none",
        ),
        pytest.param("kind: Deployment\n", "pods.yaml: apiVersion: Required value", id="no API version"),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\n", "pods.yaml: spec.template: Invalid value: null", id="no template"
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {metadata: {labels: [a]}, spec: {}}}\n",
            'pods.yaml: spec.template: metadata.labels: Invalid value: ["a"]; must be an object',
            id="a template with a wrong field",
        ),
        pytest.param(f"{POD}metadata: {{name: a}}\nspec: &a {{b: *a}}\n", "pods.yaml", id="an object inside itself"),
    ],
)
@pytest.mark.parametrize("output", ["yaml", "json"])
def test_bad_input_is_code_2_and_names_file_document_and_field(
    run: Run, tmp_path: Path, text: str | bytes, expected: str, output: str
) -> None:
    path = tmp_path / "pods.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)

    outcome = run("mutate", "-f", path, "-o", output, "--strict")

    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.startswith(f"Error: {tmp_path}/{expected}")


@pytest.mark.parametrize("command", ["mutate", "check"])
def test_objects_that_make_no_pods_are_passed_over(run: Run, tmp_path: Path, command: str) -> None:
    """Tools call the command for each file of a folder."""
    cluster = ("--cluster", write_cluster(tmp_path)) if command == "check" else ()
    outcome = run(command, "-f", "-", *cluster, stdin="apiVersion: scheduling.run.ai/v2\nkind: Queue\n")

    assert (outcome.code, outcome.output) == (0, "")
    assert outcome.errors == "passed over, because they make no pod: 1 Queue\n"


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", '{"kind": "List", "items": []}'])
def test_no_object_at_all_is_code_2(run: Run, text: str) -> None:
    outcome = run("mutate", "-f", "-", stdin=text)

    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.endswith('Error: --filename: Invalid value: "-"; holds no pod and nothing that makes one\n')


@pytest.mark.parametrize(
    ("flag", "name", "why"),
    [
        ("--filename", "missing.yaml", "No such file or directory"),
        ("--policy", "missing.yaml", "No such file or directory"),
        ("--cluster", "missing.yaml", "No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_code_2(run: Run, tmp_path: Path, flag: str, name: str, why: str) -> None:
    more = () if flag == "--filename" else ("-f", "-")

    outcome = run("mutate", *more, flag, tmp_path / name, stdin=as_list(TRAINING))

    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors == f'Error: {flag}: Invalid value: "{tmp_path / name}"; cannot be read: {why}\n'


UNKNOWN = "Forbidden: unknown field; `placement-webhook policy schema` lists the known ones"


def test_all_errors_of_a_policy_are_reported_before_any_pod(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("kind: PlacementPolicy\nspec: {foo: 1}\n")

    outcome = run("mutate", "-f", "-", "--policy", policy, stdin=as_list(TRAINING))

    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.splitlines() == [
        f"Error: {policy}: apiVersion: Required value: must be set",
        f"Error: {policy}:2: spec.foo: {UNKNOWN}",
    ]


def test_a_policy_in_shadow_mode_is_shown_where_it_is_enforced(run: Run, tmp_path: Path) -> None:
    policy, pod = tmp_path / "policy.yaml", tmp_path / "pod.json"
    policy.write_text("apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\nspec: {mode: shadow}\n")
    pod.write_bytes(orjson.dumps(make_pod("trainer").annotate(TYPE, "training").obj()))

    outcome = run("mutate", "-f", pod, "--policy", policy, "-o", "patch")

    assert outcome.code == 0
    assert orjson.loads(outcome.output)
    assert outcome.errors.startswith("Warning: spec.mode or spec.canaryPercent: the server leaves pods alone")


def test_jsonpatch_makes_the_pod_that_is_printed() -> None:
    pod = TRAINING.obj()
    verdict = admit_pod(pod)
    assert verdict.outcome == "Patched"
    verdict.operations.append({"op": "remove", "path": "/spec/absent"})

    with pytest.raises(click.ClickException, match=r"internal error: pod.yaml: .*: the patch cannot be applied"):
        admitted_pod(Document("pod.yaml", pod), verdict)


def test_no_view_is_kept_of_an_object(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has all claims of the cluster."""
    views: list[int] = []

    def count() -> None:
        gc.collect()
        views.append(sum(isinstance(each, ClusterView) for each in gc.get_objects()))

    def counting(document: Document, verdict: Allowed) -> dict[str, Any]:
        count()
        return admitted_pod(document, verdict)

    monkeypatch.setattr("webhook.cli.commands.mutate.admitted_pod", counting)
    template = TRAINING.obj()
    objects = [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": f"set-{number}"},
            "spec": {"template": template, "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]},
        }
        for number in range(10)
    ]
    count()

    outcome = run("mutate", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(*objects))

    assert outcome.code == 0
    assert len(views) == 1 + len(objects)
    assert max(views) <= views[0] + 2


@pytest.mark.parametrize(("percent", "warned"), [(99, True), (100, False)])
def test_a_canary_is_warned_of(run: Run, tmp_path: Path, percent: int, warned: bool) -> None:
    policy = tmp_path / "policy.yaml"
    head = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"
    policy.write_text(f"{head}spec: {{canaryPercent: {percent}}}\n")

    outcome = run("mutate", "-f", "-", "--policy", policy, "-o", "patch", stdin=to_yaml(TRAINING.obj()))

    assert ("the server leaves pods alone" in outcome.errors) == warned


@pytest.mark.parametrize(("replicas", "text"), [(1, "the only pod"), (3, "the first of 3 pods")])
def test_the_pod_of_a_template_is_named_in_a_comment(run: Run, replicas: int, text: str) -> None:
    spec = {"replicas": replicas, "selector": {"matchLabels": {}}, "template": TRAINING.template()}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}

    outcome = run("mutate", "-f", "-", stdin=to_yaml(owner))

    assert outcome.output.startswith(f"# Deployment default/web: {text}\n")


def test_only_pods_are_said_to_be_rejected_without_an_image(run: Run) -> None:
    """An API server rejects the object of a template, which no webhook for pods sees."""
    template = TRAINING.spec(containers=[{"name": "c"}]).template()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}

    outcome = run("mutate", "-f", "-", "-o", "patch", stdin=to_yaml(owner))

    assert (outcome.code, outcome.errors) == (0, "")


def test_of_several_policies_the_one_in_shadow_mode_is_named(run: Run, tmp_path: Path) -> None:
    policies = tmp_path / "policies.yaml"
    head = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"
    team = "metadata: {name: team}\nspec: {mode: shadow, namespaceSelector: {matchLabels: {team: a}}}\n"
    policies.write_text(f"{head}---\n{head}{team}")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"team": "a"}}}
    other = make_pod("other").annotate(TYPE, "training")

    outcome = run("mutate", "-f", "-", "--policy", policies, "-o", "patch", stdin=as_list(namespace, TRAINING, other))

    (warning,) = [line for line in outcome.errors.splitlines() if line.startswith("Warning: ")]
    assert re.match(
        r"Warning: team@[0-9a-f]+: spec\.mode or spec\.canaryPercent: the server leaves pods alone", warning
    )

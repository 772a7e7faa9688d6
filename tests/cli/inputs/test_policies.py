"""Commands with several policies: each pod is decided by the policy of its namespace."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.admission import TYPE
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.programs.command import Run

HEAD = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
TEAM = {"matchLabels": {"team": "a"}}
USAGE = {"nodeUsage": {"allow": ["training"]}}
BY_TEAM = {"training": {**USAGE, "schedulerName": "team-scheduler"}}


def policy(name: str, selector: Any = None, **spec: Any) -> dict[str, Any]:
    selected = {} if selector is None else {"namespaceSelector": selector}
    return {**HEAD, "metadata": {"name": name}, "spec": spec | selected}


DEFAULT = policy("default")
OF_TEAM = policy("team-a", TEAM, workloadTypes=BY_TEAM, allowedSchedulers=["team-scheduler"])


def as_list(*objects: Any) -> str:
    items = [each if isinstance(each, dict) else each.obj() for each in objects]
    return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}).decode()


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def pod(name: str, of: str) -> PodBuilder:
    return make_pod(name).namespace(of).annotate(TYPE, "training")


PODS = (pod("ours", "a"), pod("theirs", "b"))


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    path = tmp_path / "policies.json"
    path.write_text(as_list(OF_TEAM, DEFAULT))
    return path


def scheduler_names(output: str) -> list[str]:
    return [orjson.loads(line)["spec"]["schedulerName"] for line in output.splitlines()]


def chosen_policies(errors: str) -> list[str]:
    """The lines about a chosen policy, without the revision."""
    return [line.partition("@")[0] for line in errors.splitlines() if ": policy " in line]


def test_a_pod_gets_what_the_policy_of_its_namespace_injects(run: Run, policies: Path) -> None:
    given = as_list(namespace("a", team="a"), namespace("b"), *PODS)
    outcome = run("mutate", "-f", "-", "--policy", policies, "-o", "json", stdin=given)

    assert outcome.code == 0
    assert scheduler_names(outcome.output) == ["team-scheduler", "volcano"]
    assert chosen_policies(outcome.errors) == ["a/ours: policy team-a", "b/theirs: policy default"]
    assert "labels not known" not in outcome.errors


def test_the_flag_can_be_given_several_times(run: Run, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("default.json", "team.json")]
    for path, document in zip(paths, (DEFAULT, OF_TEAM), strict=True):
        path.write_text(orjson.dumps(document).decode())
    given = as_list(namespace("a", team="a"), PODS[0])

    outcome = run("mutate", "-f", "-", "--policy", paths[0], "--policy", paths[1], "-o", "json", stdin=given)

    assert scheduler_names(outcome.output) == ["team-scheduler"]


def test_labels_are_those_of_the_cluster_under_those_of_the_files(run: Run, policies: Path, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(make_node_object("n"), namespace("a", team="b", zone="z"), namespace("b", team="a")))
    given = as_list(namespace("a", team="a"), *PODS)

    outcome = run("mutate", "-f", "-", "--policy", policies, "--cluster", cluster, "-o", "json", stdin=given)

    assert scheduler_names(outcome.output) == ["team-scheduler", "team-scheduler"]


def test_annotations_of_a_namespace_of_the_files_are_no_defaults_and_the_user_is_told(
    run: Run, policies: Path, tmp_path: Path
) -> None:
    ours, theirs = namespace("a", team="a"), namespace("b")
    for each in (ours, theirs):
        each["metadata"]["annotations"] = {TYPE: "training", "example.com/owner": "x"}
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(make_node_object("n"), theirs))
    untyped = make_pod("untyped").namespace("a").gpu(1)

    given = as_list(ours, theirs, untyped)
    outcome = run("mutate", "-f", "-", "--policy", policies, "--cluster", cluster, "-o", "patch", stdin=given)

    assert outcome.output == "[]\n"
    (warning,) = [line for line in outcome.errors.splitlines() if line.startswith("Warning")]
    ignored = f"annotations of a file of -f are no defaults of its pods: {TYPE}"
    assert warning == f"Warning: namespace a: {ignored}; give the Namespace in the file of --cluster"


def test_without_labels_only_the_name_selects_and_the_user_is_told_once(run: Run, tmp_path: Path) -> None:
    by_name = policy("named", {"matchLabels": {"kubernetes.io/metadata.name": "b"}})
    path = tmp_path / "policies.json"
    path.write_text(as_list(DEFAULT, OF_TEAM, by_name))

    outcome = run("mutate", "-f", "-", "--policy", path, "-o", "json", stdin=as_list(*PODS, pod("more", "a")))

    chosen = ["a/ours: policy default", "b/theirs: policy named", "a/more: policy default"]
    assert chosen_policies(outcome.errors) == chosen
    unknown = [line.partition(":")[0] for line in outcome.errors.splitlines() if "labels not known" in line]
    assert unknown == ["namespace a", "namespace b"]


def test_a_denied_pod_is_reported_with_its_policy(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policies.json"
    path.write_text(as_list(DEFAULT, policy("team-a", TEAM, workloadTypes={"other": USAGE})))
    given = as_list(namespace("a", team="a"), namespace("b"), *PODS)

    outcome = run("mutate", "-f", "-", "--policy", path, "-o", "json", stdin=given)

    assert outcome.code == 5
    named, refused = outcome.errors.splitlines()[:2]
    assert (chosen_policies(named), refused.split(": ")[0]) == (["a/ours: policy team-a"], "Refused")


def test_kinds_are_those_of_the_policy_of_the_namespace(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policies.json"
    kinds = [{"group": "example.com", "kind": "Run", "resource": "runs", "templates": [{"path": "spec.template"}]}]
    path.write_text(as_list(DEFAULT, policy("team-a", TEAM, workloadKinds=kinds)))

    def started(of: str) -> dict[str, Any]:
        template = {"metadata": {"annotations": {TYPE: "training"}}, "spec": make_pod("x").obj()["spec"]}
        head = {"apiVersion": "example.com/v1", "kind": "Run", "metadata": {"name": "r", "namespace": of}}
        return {**head, "spec": {"template": template}}

    ours = run("mutate", "-f", "-", "--policy", path, stdin=as_list(namespace("a", team="a"), started("a")))
    theirs = run("mutate", "-f", "-", "--policy", path, stdin=as_list(namespace("b"), started("b")))

    assert (ours.code, theirs.code) == (0, 2)
    assert "is not a known kind" in theirs.errors


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    nodes = (make_node_object(name, labels={"maip.mxsf.io/node.usage": name}) for name in ("training", "hybrid"))
    path.write_text(as_list(*nodes, namespace("a", team="a"), namespace("b")))
    return path


def test_check_and_capacity_name_the_policy_and_judge_by_it(run: Run, policies: Path, cluster: Path) -> None:
    given, flags = as_list(*PODS), ("--cluster", cluster, "--policy", policies, "--mutate")
    text = run("check", "-f", "-", *flags, stdin=given)
    lines = [
        orjson.loads(line) for line in run("check", "-f", "-", *flags, "-o", "json", stdin=given).output.splitlines()
    ]

    assert [line.partition("@")[0] for line in text.output.splitlines() if line.startswith("  policy: ")] == [
        "  policy: team-a",
        "  policy: default",
    ]
    assert [each["policy"]["name"] for each in lines] == ["team-a", "default"]
    assert [each["nodes"]["feasible"] for each in lines] == [1, 2]

    counted = run("capacity", "-f", "-", *flags, "-o", "json", stdin=given).output.splitlines()
    assert [set(orjson.loads(line)["nodes"]) for line in counted] == [{"training"}, {"training", "hybrid"}]
    assert [orjson.loads(line)["policy"]["name"] for line in counted] == ["team-a", "default"]
    shown = run("capacity", "-f", "-", *flags, "--until", 2, stdin=given).output
    assert "  policy: team-a@" in shown


def test_with_one_policy_the_output_does_not_name_it(run: Run, cluster: Path) -> None:
    given, flags = as_list(*PODS), ("--cluster", cluster, "--mutate")
    text, as_json = (
        run("check", "-f", "-", *flags, stdin=given),
        run("check", "-f", "-", *flags, "-o", "json", stdin=given),
    )

    assert "policy" not in text.output + text.errors
    assert all("policy" not in orjson.loads(line) for line in as_json.output.splitlines())


@pytest.mark.parametrize("command", ["mutate", "check", "capacity"])
def test_policies_without_a_default_are_code_2(run: Run, tmp_path: Path, cluster: Path, command: str) -> None:
    path = tmp_path / "policies.json"
    path.write_text(as_list(OF_TEAM, policy("b", {})))

    outcome = run(command, "-f", "-", "--cluster", cluster, "--policy", path, stdin=as_list(*PODS))

    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.startswith(f"Error: {path}: Required value: one of the policies must have no spec.namespace")


def test_a_single_policy_with_a_selector_is_that_of_all_namespaces_with_a_warning(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(orjson.dumps(OF_TEAM).decode())

    outcome = run("mutate", "-f", "-", "--policy", path, "-o", "json", stdin=as_list(*PODS))

    assert scheduler_names(outcome.output) == ["team-scheduler", "team-scheduler"]
    assert outcome.errors.startswith(f"Warning: {path}: spec.namespaceSelector has no effect")


def test_a_policy_that_is_never_in_force_is_a_warning(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policies.json"
    path.write_text(as_list(DEFAULT, OF_TEAM, policy("twin", TEAM)))

    outcome = run("policy", "show", "--policy", path)

    assert outcome.errors.startswith("Warning: twin: team-a has the same priority and namespaceSelector")
    assert [line.partition("@")[0] for line in outcome.output.splitlines() if line.startswith("# ")] == [
        "# default",
        "# team-a",
        "# twin",
    ]


def test_a_malformed_namespace_of_a_file_is_an_error_with_its_place(run: Run, policies: Path) -> None:
    wrong = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"team": 1}}}

    outcome = run("mutate", "-f", "-", "--policy", policies, stdin=as_list(PODS[0], wrong))

    assert outcome.code == 2
    assert outcome.errors.startswith("Error: <stdin>: items[1]: metadata.labels")


@pytest.mark.parametrize("written", ["yaml", "json"])
def test_shown_policies_can_be_read_again(run: Run, policies: Path, tmp_path: Path, written: str) -> None:
    shown = run("policy", "show", "--policy", policies, "-o", written).output
    again = tmp_path / "again.yaml"
    again.write_text(shown)

    assert run("policy", "show", "--policy", again, "-o", written).output == shown

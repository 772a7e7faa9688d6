"""`replay`: its sources, its output and its exit codes."""

import gzip
import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from placement_planner.replay.policy_comparison import Replay
from tests.support.admission import TYPE
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.clusters import review
from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import run_here
from tests.support.programs.recorded_admissions import write_recorded
from webhook.audit.head import SUFFIX as HEAD_SUFFIX
from webhook.policy.loader import built_in_policy, parse_policy
from webhook.policy.policy import Policy

TRAINING = make_pod("trainer").namespace("team-a").annotate(TYPE, "training").gpu(1)
NEW = """
apiVersion: placement.maip.mxsf.io/v1alpha1
kind: PlacementPolicy
metadata: {name: candidate}
spec: {workloadTypes: {inference: {nodeUsage: {allow: [inference]}}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.yaml").write_text(NEW)
    (tmp_path / "old.yaml").write_text(NEW.replace("candidate", "old").replace("inference", "training"))
    write_recorded(tmp_path / "audit.jsonl", (review(number, shape=number % 2) for number in range(6)))
    return tmp_path


def event(pod: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Request",
        "stage": "ResponseComplete",
        "verb": "create",
        "requestURI": "/api/v1/namespaces/team-a/pods",
        "user": {"username": "jane", "groups": ["devs"]},
        "objectRef": {"resource": "pods", "namespace": "team-a", "apiVersion": "v1"},
        "requestReceivedTimestamp": "2026-05-01T08:00:00.000000Z",
        "requestObject": pod,
        **fields,
    }


def as_lines(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(each) + b"\n" for each in events)


@pytest.mark.usefixtures("folder")
class TestSources:
    def test_audit_files_are_compared_with_the_policy_that_their_records_name(self) -> None:
        done = run_here("replay", "--policy", "new.yaml", "audit.jsonl")

        assert done.code == 0, done.errors
        assert done.output.splitlines()[:2] == [
            f"6 pods of 1 source, by {built_in_policy().identity} and by {candidate()}",
            "6 would be decided otherwise, 6 of them refused",
        ]
        assert "outcome: Patched → Denied" in done.output

    def test_a_policy_that_the_records_name_and_that_is_not_here_has_to_be_given(self) -> None:
        write_recorded(Path("other.jsonl"), [review(0, shape=0)], policy_of("old.yaml"))
        done = run_here("replay", "--policy", "new.yaml", "other.jsonl")

        assert (done.code, done.output) == (2, "")
        assert "Error: --against: Required value: the records are of old@" in done.errors

    def test_a_policy_to_compare_with_that_cannot_be_read_is_named_by_its_flag(self, folder: Path) -> None:
        done = run_here("replay", "--policy", "new.yaml", "--against", str(folder), "audit.jsonl")

        assert done.code == 2
        assert "Error: --against: Invalid value" in done.errors

    def test_a_new_policy_that_reads_annotations_which_audit_files_do_not_keep_is_a_warning(self, folder: Path) -> None:
        (folder / "moved.yaml").write_text(NEW.replace("spec: {", "spec: {keyDomain: example.com, "))
        (folder / "log").write_bytes(as_lines([event(TRAINING.obj())]))
        of_records = run_here("replay", "--policy", "moved.yaml", "audit.jsonl")
        of_events = run_here("replay", "--policy", "moved.yaml", "--against", "old.yaml", "log")

        assert of_records.code == 0
        assert "Warning: candidate@" in of_records.errors
        assert "of example.com, but audit files have values only of maip.mxsf.io" in of_records.errors
        assert "Warning" not in of_events.errors

    def test_rotated_files_have_the_pods_of_their_log(self, folder: Path) -> None:
        (folder / "audit.jsonl").rename(folder / "audit.jsonl.3")
        assert run_here("replay", "--policy", "new.yaml", "audit.jsonl.3").output.startswith("6 pods of 1 source")

    def test_the_head_of_a_log_is_no_source(self, folder: Path) -> None:
        """`audit.jsonl*` in a shell names it, too."""
        (folder / f"audit.jsonl{HEAD_SUFFIX}").write_text("a line that is no record\n")
        done = run_here("replay", "--policy", "new.yaml", "audit.jsonl", f"audit.jsonl{HEAD_SUFFIX}")

        assert (done.code, done.output.splitlines()[0][:18]) == (0, "6 pods of 1 source")

    def test_blank_lines_are_passed_over_and_places_count_them(self, folder: Path) -> None:
        events = as_lines([event(TRAINING.obj())])
        (folder / "log").write_bytes(b"\n" + events + b" \n" + events)
        arguments = ("replay", "--policy", "new.yaml", "--against", "old.yaml", "-o", "json")
        of_file, of_pipe = run_here(*arguments, "log"), run_here(*arguments, "-", stdin=(folder / "log").read_bytes())

        for done in (of_file, of_pipe):
            assert [each["place"].rpartition(":")[2] for each in lines(done.output)] == ["2", "4"]
            assert "left out" not in done.errors

    def test_records_of_standard_input_need_the_file_of_their_pods(self, folder: Path) -> None:
        records = (folder / "audit.jsonl").read_bytes()
        alone = run_here("replay", "--policy", "new.yaml", "-", stdin=records)
        done = run_here("replay", "--policy", "new.yaml", "audit.jsonl.pods", "-", stdin=records)

        assert "6 × record whose pod is not in FILE.pods" in alone.errors
        assert (alone.code, done.code) == (2, 0)

    def test_an_audit_log_of_an_api_server_has_what_clients_sent(self, folder: Path) -> None:
        events = [
            event(TRAINING.obj()),
            event(TRAINING.obj(), stage="RequestReceived"),
            event(TRAINING.obj(), verb="update"),
            event(TRAINING.obj(), requestURI="/api/v1/namespaces/team-a/pods?dryRun=All"),
            event(None, level="Metadata"),
            event(TRAINING.obj(), objectRef={"resource": "pods", "subresource": "binding"}),
            {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": [event(TRAINING.obj())]},
        ]
        (folder / "log").write_bytes(as_lines(events))
        done = run_here("replay", "--policy", "new.yaml", "--against", "old.yaml", "-o", "json", "log")

        assert [(each["pod"], each["user"], each["place"]) for each in lines(done.output)] == [
            ("team-a/trainer", "jane", "log:1"),
            ("team-a/trainer", "jane", "log:7"),
        ]
        assert "left out: 3 × event that is not the creation of a pod" in done.errors
        assert "left out: 1 × creation of a pod without requestObject: set the level Request" in done.errors
        assert "left out: 1 × dry run" in done.errors

    def test_objects_are_created_now_and_a_template_stands_for_its_pods(self, folder: Path) -> None:
        template = {"metadata": TRAINING.obj()["metadata"], "spec": TRAINING.obj()["spec"]}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "team-a"},
            "spec": {"template": template},
        }
        owned = (
            make_pod("web-5d4f-x")
            .namespace("team-a")
            .label("pod-template-hash", "5d4f")
            .owner("ReplicaSet", "web-5d4f")
        )
        bound = make_pod("worker").namespace("team-a").annotate(TYPE, "training").gpu(1).node_name("node-1")
        # The templates of a kind that the policy does not know are not read.
        runner = {"apiVersion": "example.com/v1", "kind": "Runner", "metadata": {"name": "ci", "namespace": "team-a"}}
        of_runner = make_pod("ci-1").namespace("team-a").annotate(TYPE, "training").gpu(1).owner("Runner", "ci")
        (folder / "objects.json").write_text(as_list(deployment, owned, bound, runner, of_runner))
        done = run_here("replay", "--policy", "new.yaml", "--against", "old.yaml", "-o", "json", "objects.json")

        assert [each["owner"] or each["pod"] for each in lines(done.output)] == [
            "Deployment/web",
            "team-a/worker",
            "Runner/ci",
        ]
        assert "left out: 1 × pod whose object is there, too" in done.errors

    def test_the_pods_of_a_cluster_are_placed_on_it(self, folder: Path) -> None:
        node = make_node_object(
            "node-1", labels={"maip.mxsf.io/node.usage": "inference"}, capacity={"nvidia.com/gpu": 8}
        )
        (folder / "cluster.json").write_text(as_list(node, TRAINING))
        new = NEW.replace("inference:", "training:")
        (folder / "new.yaml").write_text(new)
        arguments = ("replay", "--policy", "new.yaml", "--against", "old.yaml", "--cluster", "cluster.json")
        done = run_here(*arguments, "--fail-on", "verdict")
        other_way = run_here(
            *arguments[:2], "old.yaml", "--against", "new.yaml", *arguments[5:], "--fail-on", "verdict"
        )

        assert "verdict: Infeasible → Feasible" in done.output
        assert (done.code, other_way.code) == (0, 7)
        assert "--fail-on verdict: 1 pod would have a worse verdict" in other_way.errors


@pytest.mark.usefixtures("folder")
class TestOutput:
    def test_json_has_a_line_for_each_pod_with_both_decisions(self) -> None:
        found = lines(run_here("replay", "--policy", "new.yaml", "-o", "json", "audit.jsonl").output)

        assert len(found) == 6
        assert found[0]["changes"][0] == {"kind": "outcome", "detail": "Patched → Denied"}
        assert [found[0][key]["outcome"] for key in ("old", "new")] == ["Patched", "Denied"]
        assert found[0]["place"] == "audit.jsonl:1"

    def test_a_diff_is_printed_once_for_equal_pods(self) -> None:
        done = run_here("replay", "--policy", "new.yaml", "-o", "diff", "audit.jsonl")

        assert done.output.count("+++ ") == 2
        assert "-outcome: Patched" in done.output
        assert "+outcome: Denied" in done.output
        assert "6 pods: 6 otherwise, 6 refused" in done.errors

    def test_a_diff_has_no_pod_that_both_policies_treat_alike(self, folder: Path) -> None:
        plain = make_pod("plain").namespace("team-a")
        (folder / "objects.json").write_text(as_list(plain, TRAINING, plain))
        arguments = ("--policy", "new.yaml", "--against", "old.yaml", "objects.json")
        done, counts = run_here("replay", "-o", "diff", *arguments), run_here("replay", *arguments)

        assert (done.code, done.output.count("+++ ")) == (0, 1)
        assert "3 pods: 1 otherwise, 1 refused" in done.errors
        assert counts.output.splitlines()[1:3] == ["1 would be decided otherwise, 1 of them refused", ""]

    @pytest.mark.parametrize(("what", "code"), [("denied", 7), ("any", 7), ("denied,any", 7), ("", 0)])
    def test_fail_on_is_an_exit_code_for_pipelines(self, what: str, code: int) -> None:
        done = run_here("replay", "--policy", "new.yaml", "--fail-on", what, "audit.jsonl")

        assert done.code == code
        assert ("--fail-on denied: 6 pods would be refused\n" in done.errors) == ("denied" in what)

    def test_a_policy_against_itself_fails_on_nothing(self) -> None:
        done = run_here("replay", "--policy", "new.yaml", "--against", "new.yaml", "--fail-on", "any", "audit.jsonl")

        assert (done.code, done.output.splitlines()[1]) == (0, "no pod would be decided otherwise")
        assert f"6 pods were admitted by other policies than --against: {built_in_policy().identity} (6)" in done.errors

    def test_a_policy_of_the_same_revision_under_another_name_is_the_one_of_the_records(self) -> None:
        head = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"
        Path("renamed.yaml").write_text(f"{head}metadata: {{name: renamed}}\n")
        done = run_here("replay", "--policy", "new.yaml", "--against", "renamed.yaml", "audit.jsonl")

        assert "were admitted by other policies" not in done.errors

    def test_an_interrupt_reports_what_was_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        add = Replay.add

        def interrupted(self: Replay, *given: Any) -> Any:
            if self.report.pods == 3:
                raise KeyboardInterrupt
            return add(self, *given)

        monkeypatch.setattr(Replay, "add", interrupted)
        done = run_here("replay", "--policy", "new.yaml", "audit.jsonl")

        assert (done.code, done.output.splitlines()[1]) == (130, "3 would be decided otherwise, 3 of them refused")
        assert "Interrupted after 3 pods" in done.errors


@pytest.mark.usefixtures("folder")
class TestBadInput:
    def wrong(self, *arguments: str, stdin: bytes = b"") -> str:
        done = run_here("replay", *arguments, stdin=stdin)
        assert (done.code, done.output) == (2, "")
        assert done.errors.count("Error") == 1
        return done.errors

    def test_a_line_that_was_cut_off_is_named(self, folder: Path) -> None:
        text = (folder / "audit.jsonl").read_bytes()
        (folder / "audit.jsonl").write_bytes(text[: len(text) * 3 // 4])

        assert "Error: audit.jsonl:5: Invalid value" in self.wrong("--policy", "new.yaml", "audit.jsonl")
        done = run_here("replay", "--policy", "new.yaml", "--skip-invalid", "audit.jsonl")
        assert (done.code, done.output[:6]) == (0, "4 pods")
        assert "left out: 1 line that cannot be read" in done.errors

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"", "is empty"),
            (gzip.compress(b"{}", mtime=0), "is compressed; pipe it: `zcat source"),
            (b"hello: world\n", "holds no audit record, no event of an API server's audit log, and no object"),
            (b"{{{", "must be YAML or JSON"),
            (b"\xff\xfe", "must be YAML or JSON in UTF-8"),
        ],
    )
    def test_a_file_that_is_no_source_is_named(self, folder: Path, content: bytes, problem: str) -> None:
        (folder / "source").write_bytes(content)

        assert problem in self.wrong("--policy", "new.yaml", "--against", "old.yaml", "source")

    def test_records_without_pods_cannot_be_replayed(self, folder: Path) -> None:
        write_lines(folder / "plain.jsonl", chain_lines([make_record(1)]))

        assert "1 × record without a pod: of a server without --audit-pods" in self.wrong(
            "--policy", "new.yaml", "plain.jsonl"
        )

    def test_an_altered_pod_is_named(self, folder: Path) -> None:
        pods = folder / "audit.jsonl.pods"
        pods.write_bytes(pods.read_bytes().replace(b'"team-a"', b'"team-b"', 1))

        assert "audit.jsonl.pods:1: Invalid value" in self.wrong("--policy", "new.yaml", "audit.jsonl")

    def test_a_policy_that_is_not_valid_is_named(self, folder: Path) -> None:
        (folder / "new.yaml").write_text(NEW.replace("workloadTypes", "workloadType"))

        assert "new.yaml:5: spec.workloadType: " in self.wrong("--policy", "new.yaml", "audit.jsonl")

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (["audit.jsonl"], "Missing option '--policy'"),
            (["--policy", "new.yaml"], "give a SOURCE, --cluster or --kubeconfig"),
            (["--policy", "new.yaml", "--fail-on", "verdict", "audit.jsonl"], "needs a view of the cluster"),
            (["--policy", "new.yaml", "--fail-on", "x", "audit.jsonl"], "'x' must be one of denied, verdict, any"),
            (["--policy", "new.yaml", "none.jsonl"], "none.jsonl"),
            (["--policy", "new.yaml", "-", "--cluster", "-"], "cannot both be standard input"),
            (["--policy", "new.yaml", "--cluster", "a", "--kubeconfig", "b"], "--cluster is a file"),
        ],
    )
    def test_wrong_usage_is_one_line(self, arguments: list[str], problem: str) -> None:
        assert problem in self.wrong(*arguments)


def test_progress_is_shown_on_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("webhook.cli.output.terminal._SECONDS_BETWEEN", 0)
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(sys, "argv", ["placement-webhook", "replay", "--policy", "new.yaml", "audit.jsonl"])
    from webhook.cli import main

    with pytest.raises(SystemExit):
        main()

    assert "\r0 pods, 0 otherwise" in shown.getvalue()


def candidate() -> str:
    return policy_of("new.yaml").identity


def policy_of(name: str) -> Policy:
    return parse_policy(Path(name).read_text(), name)

"""The output of `doctor`, its choice of checks, and what it makes of bad input."""

from pathlib import Path

import orjson
import pytest

from placement_doctor.registry import CHECKS
from tests.doctor.healthy import configuration
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import fake_api
from tests.support.servers.kubeconfigs import write_kubeconfig
from webhook.policy.spec.document import API_VERSION, KIND

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
EMPTY = {"metadata": {"resourceVersion": "1"}, "items": []}


def test_findings_are_text_with_the_place_the_fault_and_the_remedy(run: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        api.objects = {CONFIGURATIONS: EMPTY}
        done = run("doctor", "--kubeconfig", api.kubeconfig(tmp_path), "--check", "installed", "--check", "readable")

    assert done.code == 4
    assert done.output.splitlines() == [
        "error [installed] MutatingWebhookConfiguration 00-placement-webhook",
        "  does not exist, so no pod is sent to the webhook; the cluster has none",
        "  mend: `placement-webhook certs register` adds it",
        "1 error (2 checks)",
    ]
    assert done.errors == ""


def test_json_has_the_findings_of_the_text_in_their_order(run: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        api.objects = {CONFIGURATIONS: EMPTY}
        kubeconfig = api.kubeconfig(tmp_path)
        text = run("doctor", "--kubeconfig", kubeconfig)
        printed = orjson.loads(run("doctor", "--kubeconfig", kubeconfig, "-o", "json").output)

    findings = printed["findings"]
    severities = [each["severity"] for each in findings]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert len(set(severities)) > 1
    titles = {"error": "error", "warning": "warning", "info": "note"}
    lines = [line for line in text.output.splitlines()[:-1] if not line.startswith("and ")]
    assert lines == [
        line
        for each in findings
        for line in (
            f"{titles[each['severity']]} [{each['check']}] {each['where']}",
            f"  {each['what']}",
            f"  mend: {each['remedy']}",
        )
    ]


def test_the_pod_on_trial_is_created_in_the_given_namespace(run: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        namespaces = {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "team-z"}}]}
        registered = {"metadata": {"resourceVersion": "1"}, "items": [configuration()]}
        api.objects = {CONFIGURATIONS: registered, "/api/v1/namespaces": namespaces}
        kubeconfig = api.kubeconfig(tmp_path)
        run("doctor", "--kubeconfig", kubeconfig, "--check", "answer", "--trial-namespace", "team-z")

    (pods,) = [(path, query["dryRun"]) for path, query in api.writes if path.endswith("/pods")]
    assert pods == ("/api/v1/namespaces/team-z/pods", "All")


def test_no_fault_is_one_line(run: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        api.objects = {CONFIGURATIONS: EMPTY}
        done = run("doctor", "--kubeconfig", api.kubeconfig(tmp_path), "--check", "timeouts", "--check", "order")

    assert (done.code, done.output) == (0, "no fault found (2 checks)\n")


def test_the_checks_judge_by_the_policy_of_the_file(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "spec": {"mode": "shadow"}}).decode())
    with fake_api() as api:
        api.objects = {CONFIGURATIONS: EMPTY}
        common = ("doctor", "--kubeconfig", api.kubeconfig(tmp_path), "--check", "policy", "-o", "json")
        without, given = (orjson.loads(run(*common, *flags).output) for flags in ((), ("--policy", policy)))

    assert [each["where"] for each in given["findings"]] == ["policy: spec.mode"]
    assert all("shadow" not in each["what"] for each in without["findings"])


def test_the_cluster_is_named_unless_a_kubeconfig_is_given(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_api() as api:
        api.objects = {CONFIGURATIONS: EMPTY}
        kubeconfig = api.kubeconfig(tmp_path)
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        named, given = (run("doctor", "--check", "order", *flags) for flags in ((), ("--kubeconfig", kubeconfig)))

    assert named.errors.startswith("cluster: ")
    assert (named.output, given.errors) == (given.output, "")


def test_json_has_stable_ids(run: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        api.objects = {CONFIGURATIONS: EMPTY}
        kubeconfig = api.kubeconfig(tmp_path)
        done = run("doctor", "--kubeconfig", kubeconfig, "--check", "readable", "--check", "queues", "-o", "json")

    printed = orjson.loads(done.output)
    assert done.code == 3
    assert (printed["healthy"], printed["checks"], printed["omitted"]) == (False, ["readable", "queues"], {})
    assert {(each["check"], each["severity"]) for each in printed["findings"]} == {("readable", "warning")}


def test_all_checks_are_listed_without_a_cluster(run: Run) -> None:
    done = run("doctor", "--list")
    listed = [line for line in done.output.splitlines() if not line.startswith(" ")]
    assert (done.code, listed) == (0, [each.id for each in CHECKS])
    as_json = orjson.loads(run("doctor", "--list", "--skip", "order", "-o", "json").output)
    assert [each["id"] for each in as_json] == [each.id for each in CHECKS if each.id != "order"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--check", "order", "--skip", "order"], "--check and --skip leave no check"),
        (["--policy-only", "--check", "order"], "--policy-only and --check are mutually exclusive; give one of them."),
        (["--check", "gone"], "Invalid value for '--check': 'gone' is not one of"),
        (["--in-cluster", "--context", "a"], "--in-cluster and --kubeconfig or --context are mutually exclusive"),
        (["--kubeconfig", "/nowhere"], '--kubeconfig: Invalid value: "/nowhere"; no cluster can be read from it'),
        (["--policy", "/nowhere"], '--policy: Invalid value: "/nowhere"; cannot be read'),
        (["--within-seconds", "0"], "Invalid value for '--within-seconds'"),
    ],
)
def test_bad_usage_is_one_error(run: Run, arguments: list[str], error: str) -> None:
    done = run("doctor", *arguments)
    assert (done.code, done.output) == (2, "")
    assert error in done.errors


def test_an_api_server_that_does_not_answer_is_one_error(run: Run, tmp_path: Path) -> None:
    done = run("doctor", "--kubeconfig", write_kubeconfig(tmp_path, "http://127.0.0.1:1"))
    assert (done.code, done.output) == (1, "")
    (error,) = done.errors.splitlines()
    assert error.startswith("Error: the API server does not answer: ")


def test_a_user_that_the_api_server_does_not_know_is_one_error(run: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        api.refuses = 401
        done = run("doctor", "--kubeconfig", api.kubeconfig(tmp_path))
    assert (done.code, done.output) == (2, "")
    assert done.errors == f"Error: GET {CONFIGURATIONS}: 401 because Refused\n"


def test_an_endpoint_of_another_form_is_one_error(run: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        webhook = {"name": "a", "clientConfig": {"url": "https://a.example.com/mutate"}}
        item = {"metadata": {"name": "00-placement-webhook"}, "webhooks": [webhook]}
        api.objects = {CONFIGURATIONS: {**EMPTY, "items": [item]}}
        kubeconfig = api.kubeconfig(tmp_path)
        done = run("doctor", "--kubeconfig", kubeconfig, "--check", "certificate", "--endpoint", "nonsense")
    assert (done.code, done.errors) == (2, 'Error: --endpoint: Invalid value: "nonsense"; must be HOST:PORT\n')

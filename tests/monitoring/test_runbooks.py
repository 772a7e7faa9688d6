"""The commands of the runbooks: each runs on a real API server, as far as it needs no kubelet."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from certs.registration import FIELD_MANAGER
from certs.secret import OWNER
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.docs.markdown import ROOT, blocks, rows, span_of, spans
from tests.doctor.installed import NAMESPACE, Installed, installed
from tests.support.objects.builders import make_pod
from tests.support.objects.manifests import Object, pod_template, read, read_one
from tests.support.objects.policy_objects import policy, served_policies
from tests.support.programs.command import run_here, understand
from webhook.runtime.metrics import Metrics

RUNBOOKS = ROOT / "docs" / "runbooks"
PAGES = sorted(RUNBOOKS.glob("Placement*.md"))
# What only a kubelet, or an aggregated API, answers.
CHANGES = ("apply", "delete", "patch", "scale", "undo")
NEEDS_KUBELET = ("logs", "exec", "port-forward", "top")
EXIT_CODES = {"doctor": {0, 3, 4}, "check": {0, 3, 4}, "status": {0, 2}, "missed": {0, 3}}


class Command(NamedTuple):
    """A command of a page, without what its output is piped to, and the texts that are looked for in the output."""

    page: str
    words: list[str]
    sought: list[str]


def commands() -> Iterator[Command]:
    for page in PAGES:
        for block in blocks(page, "console"):
            for line in block.text.splitlines():
                first, *pipes = line.removesuffix("&").split(" | ")
                greps = [shlex.split(each) for each in pipes if each.startswith("grep ")]
                sought = [text for words in greps for text in words[-1].split("|")]
                yield Command(page.stem, shlex.split(first), sought)


def inline(page: Path) -> Iterator[list[str]]:
    """Yield the commands in the sentences of a page; some name a verb alone."""
    for span in spans(page):
        words = shlex.split(span.partition(" | ")[0])
        if words[0] in ("kubectl", "placement-webhook") and words[-1] not in ("-k", "-f", "restart"):
            yield words


COMMANDS = list(commands())
INLINE = {" ".join(words): words for page in PAGES for words in inline(page)}
SHOWN = {" ".join(each.words): each for each in COMMANDS}


def is_log(command: Command) -> bool:
    return command.words[0] == "kubectl" and "logs" in command.words and "--previous" not in command.words


LOGS = [each for each in COMMANDS if is_log(each)]


@pytest.mark.parametrize("command", LOGS, ids=lambda each: each.page)
def test_logs_are_read_by_time(command: Command) -> None:
    """The last lines are not those of the fault. With a selector, kubectl prints ten lines a pod without --tail=-1."""
    assert "--since=1h" in command.words
    assert ("-l" in command.words) is ("--tail=-1" in command.words)


@pytest.mark.parametrize("command", LOGS, ids=lambda each: each.page)
def test_what_is_looked_for_in_our_logs_is_logged(command: Command) -> None:
    if NAMESPACE in command.words:
        logged = [span_of(row[0]) or row[0] for row in rows(ROOT / "docs" / "monitoring.md", "Logs")]
        unknown = [text for text in command.sought if not any(text in event for event in logged)]
        assert unknown in ([], ["policy"])


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.words[0] == "curl"], ids=lambda each: each.page)
def test_the_metrics_that_are_looked_for_exist(command: Command) -> None:
    metrics = Metrics()
    metrics.show_process()
    shown = metrics.render().decode()
    assert [text for text in command.sought if text not in shown] == []


def test_the_managers_of_fields_are_those_that_write_them() -> None:
    text = (RUNBOOKS / "PlacementWebhookCABundleContested.md").read_text()
    assert f"`{OWNER}`" in " ".join(text.split())
    assert f"as `{FIELD_MANAGER}`" in text


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """An installation with a certs controller, a replica `pod`, an admission and a policy of team-a."""
    cluster, folder = Cluster(control_plane), tmp_path_factory.mktemp("runbooks")
    trainer = make_pod("trainer").annotate("maip.mxsf.io/workload-type", "training").gpu(1).obj()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "placement-webhook-tls"}}
    try:
        with installed(cluster, folder) as made, served_policies(control_plane):
            for content in (
                *read("overlays/self-managed/certs-rbac.yaml"),
                read_one("overlays/self-managed/certs-controller.yaml"),
            ):
                cluster.client.apply(content)
            for content in (replica(), secret):
                cluster.client.create(content, namespace=NAMESPACE)
            cluster.client.create(policy("team-a", "a"))
            cluster.client.create(trainer, namespace=cluster.namespace, dry_run=True)
            for name in ("pod", "large-pod"):
                (folder / f"{name}.yaml").write_text(json.dumps(trainer))
            (folder / "policy.yaml").write_bytes((ROOT / "deploy" / "base" / "policy.yaml").read_bytes())
            yield made
            cluster.control_plane.kubectl("delete", "clusterrole,clusterrolebinding", "placement-webhook-certs")
    finally:
        cluster.remove_everything()


def replica() -> Object:
    template = pod_template(read_one("base/deployment.yaml"))
    metadata = {"name": "pod", "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize("shown", [each for each in SHOWN if not each.startswith("curl ")])
def test_a_command_runs(installation: Installed, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs a kubelet gets as far as it: its flags and names are right."""
    monkeypatch.chdir(installation.folder)
    record = json.loads((installation.folder / "audit.jsonl").read_text().splitlines()[0])
    given = {
        "POD": "pod",
        "DECISION": record["decision"],
        "~/.kube/config": str(installation.cluster.control_plane.kubeconfig),
    }
    words = [given.get(each, each) for each in SHOWN[shown].words]
    if words[0] == "placement-webhook":
        done = run_here(*words[1:])
        verb = next((each for each in words[1:3] if each in EXIT_CODES), "")
        assert done.code in EXIT_CODES.get(verb, {0}), done.errors
        return
    # A roll-out without controllers does not end.
    words = ["--timeout=1s" if each == "--timeout=10s" else each for each in words]
    if "logs" in words:
        # A Deployment without controllers has no pod to wait for.
        words.append("--pod-running-timeout=0.1s")
    ran = installation.cluster.control_plane.kubectl(*words[1:], check=False)
    if any(each in words for each in NEEDS_KUBELET):
        assert not any(each in ran.stderr for each in ("unknown", "Usage", "not found")), ran.stderr
    elif "status" in words:
        assert "Waiting for deployment" in ran.stdout + ran.stderr
    else:
        # `auth can-i` answers no with 1.
        assert ran.returncode == 0 or ran.stdout in ("no\n", "yes\n"), ran.stderr


@pytest.mark.parametrize("shown", INLINE)
def test_a_command_of_a_sentence_is_accepted(
    installation: Installed, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that change something run dry."""
    monkeypatch.chdir(ROOT)
    words = INLINE[shown]
    if words[0] == "placement-webhook":
        understand(words[1:])
        return
    dry = ["--dry-run=server"] if any(each in words for each in CHANGES) else []
    ran = installation.cluster.control_plane.kubectl(*words[1:], *dry, check=False)
    # Without controllers a Deployment has no history, and without cert-manager there are no Certificates.
    expected = ("no rollout history found", 'doesn\'t have a resource type "certificate"')
    assert ran.returncode == 0 or any(each in ran.stderr for each in expected), ran.stderr

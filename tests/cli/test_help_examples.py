"""Every example in a help text works as it is written."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from tests.support.programs.cluster_files import FEASIBLE, write_cluster
from tests.support.programs.programs import write_program
from tests.support.servers.server import write_certificate
from webhook.admission.recorded_pod import RecordedPod
from webhook.audit.lines import digest
from webhook.audit.pods import PodFile
from webhook.cli.output.yaml_text import to_yaml
from webhook.cli.root import root
from webhook.policy.loader import built_in_policy

PROGRAM = "placement-webhook"
# Since Python 3.13, a docstring has no common indentation.
_EXAMPLE = re.compile(rf"^ *((?:{PROGRAM}|kubectl|cat) .*)$", re.MULTILINE)


def leaves(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    yield path.strip(), command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from leaves(inner, f"{path} {name}")


EXAMPLES = {name: _EXAMPLE.findall(command.help or "") for name, command in leaves(root)}
# These need an installation, which tests/certs/controller has.
OF_THE_CONTROLLER = {"certs controller", "certs rotate"}
WITHOUT_ARGUMENTS = {"", "certs", "policy", "policy schema"}


def test_every_command_has_an_example() -> None:
    assert {name for name, examples in EXAMPLES.items() if not examples} == WITHOUT_ARGUMENTS


class Prepared(NamedTuple):
    """A cluster with what the examples name, and a folder with the files, in which no command has run yet."""

    cluster: Cluster
    folder: Path


@pytest.fixture(scope="module")
def prepared(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    """Cluster and files, with a context `staging`."""
    cluster, folder = Cluster(control_plane), tmp_path_factory.mktemp("examples")
    try:
        write_files(folder, cluster)
        cluster.make_nodes(make_node_object("node-1"))
        cluster.kubectl("create", "deployment", "web", "--image=nginx")
        cluster.kubectl("create", "job", "train", "--image=nginx")
        cluster.create(make_pod("worker-0"))
        cluster.make_namespace("placement-webhook")
        yield Prepared(cluster, folder)
    finally:
        cluster.remove_everything()


def write_files(folder: Path, cluster: Cluster) -> None:
    write_program(folder, PROGRAM)
    write_cluster(folder, make_node_object("node-1"), make_node_object("node-2"))
    (folder / "pod.yaml").write_text(to_yaml(FEASIBLE.obj()))
    (folder / "policy.yaml").write_text(to_yaml(built_in_policy().document.model_dump(mode="json", by_alias=True)))
    (folder / "trace.csv").write_text("arrival,duration,requests\n0,60,cpu=1\n30,60,cpu=1\n")
    with closing(PodFile(folder / "audit.jsonl")) as pods:
        record = make_record(decision="01J9Z6XYZ", pod=pods.put(RecordedPod(FEASIBLE.obj()).serialised()))
    oldest, newest = chain_lines([make_record(7), record])
    write_lines(folder / "audit.jsonl.1", [oldest])
    for name in ("audit.jsonl", "replica-1.jsonl"):
        write_lines(folder / name, [newest] if name == "audit.jsonl" else [oldest])
    (folder / "head.txt").write_text(digest(newest))
    control_plane = cluster.control_plane
    (folder / "config").write_bytes(control_plane.kubeconfig.read_bytes())
    (folder / ".kube").mkdir()
    (folder / ".kube" / "config").write_bytes(control_plane.kubeconfig.read_bytes())
    configuration = {"KUBECONFIG": str(folder / "config")}
    current = control_plane.kubectl("config", "current-context", environment=configuration).stdout.strip()
    control_plane.kubectl("config", "rename-context", current, "staging", environment=configuration)
    namespace = f"--namespace={cluster.namespace}"
    control_plane.kubectl("config", "set-context", "staging", namespace, environment=configuration)


@pytest.fixture
def folder(prepared: Prepared, tmp_path: Path) -> Iterator[Path]:
    """Return a copy of the folder. What a command has registered is removed afterwards."""
    shutil.copytree(prepared.folder, tmp_path, dirs_exist_ok=True)
    yield tmp_path
    prepared.cluster.remove_registrations()


@pytest.mark.slow
@pytest.mark.control_plane
@pytest.mark.parametrize(
    "name", [name for name, examples in EXAMPLES.items() if examples and name not in OF_THE_CONTROLLER]
)
def test_the_examples_work(name: str, folder: Path, prepared: Prepared) -> None:
    cluster = prepared.cluster
    path = os.pathsep.join([str(folder), str(cluster.control_plane.program("kubectl").parent), os.environ["PATH"]])
    anywhere = {f"PLACEMENT_WEBHOOK_{each}": "127.0.0.1:0" for each in ("LISTEN", "ADMIN_LISTEN", "CONSOLE_LISTEN")}
    if name in ("certs register", "certs status"):
        (folder / "tls").mkdir()
        write_certificate(folder / "tls")
        (folder / "tls" / "tls.key").chmod(0o600)
    own = {"PATH": path, "HOME": str(folder), "KUBECONFIG": str(folder / "config"), "KUBERC": "off"}
    environment = os.environ | anywhere | own
    for example in (each.replace("team-a", cluster.namespace) for each in EXAMPLES[name]):
        with subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", f"exec {example}" if is_endless(example) else example],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None
            first = process.stderr.readline() if is_server(example) else b""
            if first:
                assert b"serving" in first or b"console of " in first
                process.send_signal(signal.SIGTERM)
            elif " --follow " in example:
                assert process.stdout is not None
                assert b"DECISION" in process.stdout.readline()
                process.send_signal(signal.SIGTERM)
            _, errors = process.communicate()
        assert process.returncode in _expected_codes(example), (example, errors)
        assert b"Error" not in errors, example


def is_server(example: str) -> bool:
    return example.startswith((f"{PROGRAM} serve", f"{PROGRAM} console"))


def is_endless(example: str) -> bool:
    return is_server(example) or " --follow " in example


def _expected_codes(example: str) -> tuple[int, ...]:
    if " --follow " in example:
        return (-signal.SIGTERM,)
    if " doctor " in example:
        return (4,)  # nothing is installed
    # 3 and 4: no node of the cluster can take the pod.
    return (0, 3, 4) if " check " in example else (0,)

"""Each example is handled as the file beside it says, and the API server accepts it."""

import re
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.examples.expectations import FOLDER, MANIFESTS, expectation, expected_path
from webhook.kube.documents import parse

_SERVED = ("v1", "apps/v1", "batch/v1", "policy/v1", "scheduling.k8s.io/v1")


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_the_webhook_makes_of_an_example_what_the_file_beside_it_says(manifest: Path) -> None:
    assert expectation(manifest) == expected_path(manifest).read_text(), "run `make examples` and review the diff"


def test_no_expectation_is_left_without_its_manifest() -> None:
    assert {expected_path(manifest) for manifest in MANIFESTS} == set(FOLDER.glob("*.expected.yaml"))


def test_the_readme_lists_every_example() -> None:
    listed = re.findall(r"^\| \[`([^`]+)`\]\(([^)]+)\)", (FOLDER / "README.md").read_text(), re.MULTILINE)

    assert [(name, target) for name, target in listed] == [(path.name, path.name) for path in MANIFESTS]


def test_the_api_server_accepts_the_examples_of_its_own_kinds(cluster: Cluster) -> None:
    for name in ("team-llm", "team-vision"):
        cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    accepted = [
        cluster.client.create(document.content, dry_run=True).object["kind"]
        for manifest in MANIFESTS
        for document in parse(manifest.read_bytes(), manifest.name)
        if document.content["apiVersion"] in _SERVED
    ]

    assert set(accepted) >= {"Deployment", "StatefulSet", "Job", "CronJob", "Pod"}

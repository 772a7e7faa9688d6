"""Each example is handled as the file beside it says, and the API server accepts it."""

import re
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.examples.expectations import FOLDER, MANIFESTS, expectation, expected_path
from webhook.documents.documents import parse


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_the_webhook_makes_of_an_example_what_the_file_beside_it_says(manifest: Path) -> None:
    assert expectation(manifest) == expected_path(manifest).read_text(), "run `make examples` and review the diff"


def test_no_expectation_is_left_without_its_manifest() -> None:
    assert {expected_path(manifest) for manifest in MANIFESTS} == set(FOLDER.glob("*.expected.yaml"))


def test_the_readme_lists_every_example() -> None:
    listed = re.findall(r"^\| \[`([^`]+)`\]\(([^)]+)\)", (FOLDER / "README.md").read_text(), re.MULTILINE)

    assert [(name, target) for name, target in listed] == [(path.name, path.name) for path in MANIFESTS]


def test_the_api_server_accepts_every_example(cluster: Cluster, custom_kinds: None) -> None:
    """The kinds of operators have minimal CustomResourceDefinitions here."""
    for name in ("team-llm", "team-vision"):
        cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    documents = [document for path in MANIFESTS for document in parse(path.read_bytes(), path.name)]
    accepted = [cluster.client.create(document.content, dry_run=True).object["kind"] for document in documents]

    assert accepted == [document.content["kind"] for document in documents]

"""The bill of materials and the image that `make release` wrote to dist/, for `make test-release` alone."""

import json
import os
import re
import sys

import pytest
from packaging.utils import canonicalize_name

from tests.deploy.release.artifacts import VERSION
from tests.deploy.release.conftest import Release
from tests.node.images.image import engine_with
from tests.support.objects.manifests import ROOT

pytestmark = pytest.mark.slow


def test_bill_of_materials_names_the_locked_packages(made: Release) -> None:
    materials = json.loads(made.the("sbom.cdx.json").read_text())
    locked = re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)

    assert materials["bomFormat"] == "CycloneDX"
    assert materials["metadata"]["component"]["version"] == VERSION
    listed = {(canonicalize_name(each["name"]), each["version"]) for each in materials["components"]}
    assert listed == {(canonicalize_name(name), version) for name, version in locked}


def test_image_runs_the_demo(made: Release) -> None:
    """If the release has one (`IMAGE=no` leaves it out)."""

    def progress(line: str) -> None:
        print(line, file=sys.stderr)

    for archive in made.folder.glob("*-image-*.tar.gz"):
        with engine_with(archive, os.environ, progress) as engine:
            given = ("--rm", "--network=none", "--read-only", "--cap-drop=ALL", "--user=65532")
            assert "free GPUs" in engine("run", *given, f"placement-webhook:{VERSION}", "demo")
            assert VERSION in engine("run", *given, f"placement-webhook:{VERSION}", "version")

"""The files of a release: for `make test-release` those in dist/ as they are, else files made for the tests."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.release import artifacts
from tests.support.objects.manifests import ROOT

FROM_DIST = os.environ.get("TEST_RELEASE", "0") != "0"

collect_ignore = [] if FROM_DIST else ["test_dist.py"]


@dataclass(frozen=True, slots=True)
class Release:
    """The folder, the time in its archives, the image of its manifests, and the program that reads kustomizations."""

    folder: Path
    time: int
    repository: str
    kubectl: Path

    def the(self, pattern: str) -> Path:
        (found,) = self.folder.glob(pattern)
        return found


@pytest.fixture(scope="module")
def made(control_plane_programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release; one that is made here has no image and no bill of materials."""
    kubectl = control_plane_programs["kubectl"]
    if FROM_DIST:
        assert (ROOT / "dist" / artifacts.SUMS).exists(), "dist/ has no release: run `make release`"
        return Release(ROOT / "dist", artifacts.epoch(os.environ), os.environ.get("REPOSITORY", ""), kubectl)
    release = Release(tmp_path_factory.mktemp("dist"), 1_700_000_000, "", kubectl)
    artifacts.write_packages(release.folder, release.time)
    artifacts.write_chart(release.folder, release.time)
    artifacts.write_manifests(release.folder, kubectl)
    artifacts.write_sums(release.folder)
    return release

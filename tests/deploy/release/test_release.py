"""The files of `make release` are complete, and each works by itself.

`make test-release` tests those in dist/, also the bill of materials and the image (`test_dist.py`).
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.deploy.helm import Helm, with_required
from tests.deploy.release import artifacts
from tests.deploy.release.conftest import FROM_DIST, Release
from tests.node.images.engine import NoImage
from tests.support.objects.manifests import DEPLOY, Object

pytestmark = pytest.mark.slow


# Most modules are not imported here, so that compiling all of them takes longer than the rest.
OFFLINE = ("--no-index", "--no-deps", "--ignore-installed", "--no-compile")


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment with nothing of this project, and the folder of its programs."""

    folder: Path

    def run(self, program: str, *arguments: str) -> str:
        return self._run(str(self.folder / "bin" / program), *arguments)

    def install(self, wheel: Path, *flags: str) -> None:
        """Install the wheel by the pip of this environment, as one of its own takes ten seconds to make."""
        pip = (sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python"))
        self._run(*pip, "install", "--quiet", "--disable-pip-version-check", *flags, str(wheel))

    def _run(self, *command: str) -> str:
        # The other tests trust no authority of the system; the package index is one of its servers.
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SSL_CERT_")}
        return subprocess.run(
            command, cwd=self.folder, env=environ, stdout=subprocess.PIPE, text=True, check=True
        ).stdout


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A new environment with the dependencies that are installed here, so that none is downloaded; not this project.

    A folder of a .pth file is searched for modules, but not for further .pth files, such as that of this project.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    if not FROM_DIST:
        (site,) = tmp_path.glob("lib/python*/site-packages")
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    made = Environment(tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        made.run("python", "-c", "import webhook")
    return made


def test_wheel_runs_in_a_clean_environment(made: Release, environment: Environment) -> None:
    environment.install(made.the("*.whl"), *(() if FROM_DIST else OFFLINE))

    assert artifacts.VERSION in environment.run("placement-webhook", "version")
    assert "free GPUs" in environment.run("placement-webhook", "demo")
    assert str(environment.folder) in environment.run("python", "-c", "import webhook; print(webhook.__file__)")


def test_sdist_builds_the_same_wheel(made: Release, tmp_path: Path) -> None:
    with tarfile.open(made.the("placement_webhook-*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    environ = {**os.environ, artifacts.EPOCH: str(made.time)}
    subprocess.run(command, cwd=source, env=environ, stdout=subprocess.DEVNULL, check=True)

    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.read_bytes() == made.the("*.whl").read_bytes()


def test_chart_package_renders_as_the_chart(made: Release, helm: Helm, tmp_path: Path) -> None:
    package = made.the(f"placement-webhook-{artifacts.VERSION}.tgz")
    values = yaml.safe_dump(with_required({}))
    of_the_package = helm(
        "template", "placement-webhook", str(package), "--namespace", "placement-webhook", "--values", "-", stdin=values
    )

    assert of_the_package == helm.template()
    # As `helm package` packs it, in order and content.
    helm("package", str(DEPLOY / "chart"), "--destination", str(tmp_path))
    with tarfile.open(package) as ours, tarfile.open(tmp_path / package.name) as theirs:
        assert sorted(ours.getnames()) == sorted(theirs.getnames())
        assert ours.getnames()[0] == theirs.getnames()[0] == "placement-webhook/Chart.yaml"


def images_of(objects: list[Object]) -> set[str]:
    pods = [each["spec"]["template"]["spec"] for each in objects if each["kind"] in ("Deployment", "Job")]
    return {container["image"] for pod in pods for container in (*pod["containers"], *pod.get("initContainers", ()))}


@pytest.mark.parametrize("name", artifacts.MANIFESTS)
def test_manifests_are_objects_of_this_version(made: Release, name: str) -> None:
    objects = [*yaml.load_all(made.the(artifacts.manifests_name(name)).read_text(), yaml.CSafeLoader)]

    assert objects
    assert all(each["apiVersion"] and each["kind"] and each["metadata"]["name"] for each in objects)
    expected = f"{made.repository or 'placement-webhook'}:{artifacts.VERSION}"
    assert images_of(objects) == ({expected} if (DEPLOY / "overlays" / name).exists() else set())


def test_every_overlay_has_its_manifests(made: Release) -> None:
    overlays = {artifacts.manifests_name(path.name) for path in (DEPLOY / "overlays").iterdir()}

    assert overlays <= {path.name for path in made.folder.iterdir()}


def test_manifests_name_the_repository_of_the_image(
    made: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MANIFESTS", {"self-managed": artifacts.MANIFESTS["self-managed"]})
    artifacts.write_manifests(tmp_path, made.kubectl, repository="registry.example.com/team/placement-webhook")

    text = (tmp_path / artifacts.manifests_name("self-managed")).read_text()
    assert text.count(f"image: registry.example.com/team/placement-webhook:{artifacts.VERSION}") == 2
    assert "image: placement-webhook" not in text


def test_release_has_no_folders(made: Release) -> None:
    """Nor has one of GitHub: it would have the files under other names than SHA256SUMS."""
    assert [path for path in made.folder.iterdir() if path.is_dir()] == []


def test_base_that_cannot_be_pulled_is_no_image_of_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\n[ "$1" = version ] || { echo no such host >&2; exit 1; }\n')
    docker.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/bin", "XDG_CACHE_HOME": str(tmp_path)}
    monkeypatch.setenv("PATH", environ["PATH"])

    with pytest.raises(NoImage, match=r"^docker pull: no such host$"):
        artifacts.write_image(tmp_path, environ, print)


def test_checksums_are_of_every_file(made: Release) -> None:
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", artifacts.SUMS],
        cwd=made.folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    names = {line.removesuffix(": OK") for line in checked.splitlines()}
    assert names == {path.name for path in made.folder.iterdir()} - {artifacts.SUMS, ".gitignore"}


def test_the_same_commit_makes_the_same_files(made: Release, tmp_path: Path) -> None:
    artifacts.write_packages(tmp_path, made.time)
    artifacts.write_chart(tmp_path, made.time)
    artifacts.write_manifests(tmp_path, made.kubectl, made.repository)

    for path in tmp_path.glob("placement*"):
        assert path.read_bytes() == (made.folder / path.name).read_bytes(), path.name

"""What `make release` makes is complete, and each part works by itself. `make test-release` tries its image, too."""

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
from tests.support.objects.manifests import DEPLOY

pytestmark = pytest.mark.slow

TIME = 1_700_000_000
FROM_THE_INDEX = os.environ.get("TEST_RELEASE", "0") != "0"


@dataclass(frozen=True, slots=True)
class Release:
    """The folder, and the program that reads kustomizations."""

    folder: Path
    kubectl: Path

    def the(self, pattern: str) -> Path:
        (found,) = self.folder.glob(pattern)
        return found


@pytest.fixture(scope="module")
def made(control_plane_programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release without image and bill of materials, which need an engine and the package index."""
    folder, kubectl = tmp_path_factory.mktemp("dist"), control_plane_programs["kubectl"]
    artifacts.write_packages(folder, TIME)
    artifacts.write_chart(folder, TIME)
    artifacts.write_manifests(folder, kubectl)
    artifacts.write_sums(folder)
    return Release(folder, kubectl)


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment with nothing of this project, and the folder of its programs."""

    folder: Path

    def run(self, program: str, *arguments: str) -> str:
        command = [str(self.folder / "bin" / program), *arguments]
        given = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        # The other tests trust no authority of the system; the package index is one of its servers.
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SSL_CERT_")} | given
        return subprocess.run(
            command, cwd=self.folder, env=environ, stdout=subprocess.PIPE, text=True, check=True
        ).stdout


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """A new environment with the dependencies that are installed here, so that none is downloaded; not this project.

    A folder of a .pth file is searched for modules, but not for further .pth files, such as that of this project.
    """
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], check=True)
    if not FROM_THE_INDEX:
        (site,) = tmp_path.glob("lib/python*/site-packages")
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    made = Environment(tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        made.run("python", "-c", "import webhook")
    return made


def test_wheel_runs_in_a_clean_environment(made: Release, environment: Environment) -> None:
    offline = () if FROM_THE_INDEX else ("--no-index", "--no-deps", "--ignore-installed")
    environment.run("python", "-m", "pip", "install", "--quiet", *offline, str(made.the("*.whl")))

    assert artifacts.VERSION in environment.run("placement-webhook", "version")
    assert "free GPUs" in environment.run("placement-webhook", "demo")
    assert str(environment.folder) in environment.run("python", "-c", "import webhook; print(webhook.__file__)")


def test_sdist_builds_the_same_wheel(made: Release, tmp_path: Path) -> None:
    with tarfile.open(made.the("*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    environ = {**os.environ, artifacts.EPOCH: str(TIME)}
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


@pytest.mark.parametrize("name", artifacts.MANIFESTS)
def test_manifests_are_those_of_the_overlay(made: Release, name: str) -> None:
    written = [*yaml.safe_load_all((made.folder / "manifests" / f"{name}.yaml").read_text())]
    command = [str(made.kubectl), "kustomize", str(artifacts.MANIFESTS[name])]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert written
    assert written == [*yaml.safe_load_all(rendered)]


def test_every_overlay_has_its_manifests(made: Release) -> None:
    written = {path.stem for path in (made.folder / "manifests").iterdir()}

    assert written >= {path.name for path in (DEPLOY / "overlays").iterdir()}


def test_manifests_name_the_repository_of_the_image(made: Release, tmp_path: Path) -> None:
    artifacts.write_manifests(tmp_path, made.kubectl, repository="registry.example.com/team/placement-webhook")

    text = (tmp_path / "manifests" / "self-managed.yaml").read_text()
    assert text.count(f"image: registry.example.com/team/placement-webhook:{artifacts.VERSION}") == 2
    assert "image: placement-webhook" not in text


def test_checksums_are_of_every_file(made: Release) -> None:
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", artifacts.SUMS],
        cwd=made.folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    names = {line.removesuffix(": OK") for line in checked.splitlines()}
    files = {str(path.relative_to(made.folder)) for path in made.folder.rglob("*") if path.is_file()}
    assert names == files - {artifacts.SUMS, ".gitignore"}


def test_the_same_commit_makes_the_same_files(made: Release, tmp_path: Path) -> None:
    artifacts.write_packages(tmp_path, TIME)
    artifacts.write_chart(tmp_path, TIME)

    for path in tmp_path.glob("placement*"):
        assert path.read_bytes() == (made.folder / path.name).read_bytes(), path.name

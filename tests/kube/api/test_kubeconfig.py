"""Kubeconfig files are found, merged and selected from as kubectl does; kubectl itself is the judge of the merge."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.control_plane import ControlPlane
from webhook.documents.field import InvalidInput
from webhook.kube.api.kubeconfig import read_kubeconfig


def config(
    name: str, *, current: str | None = None, user: dict[str, Any] | None = None, **cluster: Any
) -> dict[str, Any]:
    """Return a kubeconfig with a cluster, a user and a context, each named `name`."""
    shown = {key.replace("_", "-"): value for key, value in cluster.items()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443/", **shown}}],
        "users": [{"name": name, "user": user or {"token": f"of {name}"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        **({} if current is None else {"current-context": current}),
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def listed(*paths: Path) -> dict[str, str]:
    return {"KUBECONFIG": os.pathsep.join(map(str, paths)), "HOME": "/nowhere"}


def problem(path: Path | None = None, context: str | None = None, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_kubeconfig(path, context, environment or {})
    return str(caught.value)


def test_the_flag_wins_over_the_variable_and_the_variable_over_the_home(tmp_path: Path) -> None:
    flag, variable = (
        write(tmp_path / "flag", config("a", current="a")),
        write(tmp_path / "variable", config("b", current="b")),
    )
    write(tmp_path / ".kube" / "config", config("c", current="c"))
    environment = {"KUBECONFIG": str(variable), "HOME": str(tmp_path)}

    servers = [
        read_kubeconfig(flag, None, environment).server,
        read_kubeconfig(None, None, environment).server,
        read_kubeconfig(None, None, {**environment, "KUBECONFIG": ""}).server,
        read_kubeconfig(None, None, {"HOME": str(tmp_path)}).server,
    ]

    assert servers == [f"https://{name}.example:6443" for name in "abcc"]


def test_a_context_replaces_the_current_one(tmp_path: Path) -> None:
    first, second = write(tmp_path / "1", config("a", current="a")), write(tmp_path / "2", config("b"))

    found = read_kubeconfig(None, "b", listed(first, second))

    assert (found.context, found.server) == ("b", "https://b.example:6443")


@pytest.mark.parametrize(
    ("first", "second", "wanted"), [("a", "b", "a"), (None, "b", "b"), ("", "b", "b"), ("b", None, "b")]
)
def test_the_first_file_that_sets_a_current_context_decides(
    tmp_path: Path, first: str | None, second: str | None, wanted: str
) -> None:
    files = write(tmp_path / "1", config("a", current=first)), write(tmp_path / "2", config("b", current=second))

    assert read_kubeconfig(None, None, listed(*files)).context == wanted


def test_file_names_are_relative_to_the_folder_of_their_file(tmp_path: Path) -> None:
    user = {"client-certificate": "pki/c.crt", "client-key": "/k.key", "tokenFile": "t", "exec": {"command": "./login"}}
    first = write(tmp_path / "x" / "1", config("a", current="a", certificate_authority="ca.crt"))
    second = write(tmp_path / "y" / "2", config("b", user=user))

    content = read_kubeconfig(None, None, listed(first, second)).content

    assert content["clusters"][0]["cluster"]["certificate-authority"] == f"{tmp_path}/x/ca.crt"
    assert content["users"][1]["user"] == {
        "client-certificate": f"{tmp_path}/y/pki/c.crt",
        "client-key": "/k.key",
        "tokenFile": f"{tmp_path}/y/t",
        "exec": {"command": f"{tmp_path}/y/login"},
    }


def test_a_command_without_a_slash_is_searched_in_the_path(tmp_path: Path) -> None:
    file = write(tmp_path / "1", config("a", current="a", user={"exec": {"command": "aws"}}))

    assert read_kubeconfig(file).content["users"][0]["user"]["exec"]["command"] == "aws"


@pytest.mark.control_plane
@pytest.mark.parametrize(
    "contents",
    [
        pytest.param([config("a", current="a"), config("b", current="b")], id="the first current context"),
        pytest.param([config("a"), config("b", current="b")], id="a current context in the second file alone"),
        pytest.param([config("a", current=""), config("b", current="b")], id="an empty current context"),
        pytest.param([None, config("b", current="b")], id="a file that does not exist"),
        pytest.param([config("a", current="a"), ""], id="an empty file"),
        pytest.param(
            [config("a", current="a"), config("a", user={"token": "another"}) | {"clusters": []}], id="a name twice"
        ),
    ],
)
def test_several_files_are_merged_as_kubectl_merges_them(
    control_plane: ControlPlane, tmp_path: Path, contents: list[Any]
) -> None:
    paths = [tmp_path / str(number) for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        if content is not None:
            write(path, content)
    shown = control_plane.kubectl("config", "view", "--raw", "-o", "json", environment=listed(*paths)).stdout

    found = read_kubeconfig(None, None, listed(*paths))

    wanted = json.loads(shown)
    assert found.context == wanted["current-context"]
    for key in ("clusters", "contexts", "users"):
        assert sorted(found.content[key], key=str) == sorted(wanted[key], key=str)


def test_a_context_that_does_not_exist_is_named_with_those_that_do(tmp_path: Path) -> None:
    file = write(tmp_path / "1", config("a", current="a"))

    assert problem(file, "b") == '--context: Unsupported value: "b"; supported values: "a"'


def test_a_kubeconfig_without_a_current_context_needs_the_flag(tmp_path: Path) -> None:
    file = write(tmp_path / "1", config("a"))

    assert problem(file) == f"--context: Required value: the kubeconfig {file} sets no current context; give one of a"


def test_an_empty_kubeconfig_has_no_context_to_choose(tmp_path: Path) -> None:
    (file := tmp_path / "config").write_text("")
    assert problem(file).endswith("sets no current context; it has none to choose")


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        pytest.param("a: b: c", ":1:5: Invalid value", id="no YAML"),
        pytest.param("clusters: 1\n", ": clusters: Invalid value: 1; ", id="no list"),
        pytest.param(
            config("a", current="b"), ": current-context: Unsupported", id="a current context that does not exist"
        ),
        pytest.param(config("a", current="a") | {"clusters": []}, "which has no server", id="no cluster"),
        pytest.param(config("a", current="a", server=""), "which has no server", id="no server"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, content: Any, wanted: str) -> None:
    file = write(tmp_path / "1", content)

    said = problem(None, None, listed(file))

    assert said.startswith("$KUBECONFIG")
    assert wanted in said


def test_missing_files_are_named_by_where_they_were_looked_for(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    remedy = "no cluster can be read from it: no such file; give --kubeconfig FILE"

    assert problem(environment=listed(absent)) == f'$KUBECONFIG: Invalid value: "{absent}"; {remedy}'
    home = tmp_path / ".kube" / "config"
    assert problem(environment={"HOME": str(tmp_path)}) == f'~/.kube/config: Invalid value: "{home}"; {remedy}'

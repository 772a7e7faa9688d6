"""The parts of the node that need no node."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.node.installation import denied_calls
from tests.node.running import machine
from tests.node.running.archive import write_image
from tests.node.running.machine import MissingMachine, require_machine


@pytest.mark.parametrize(("enforces_policies", "further"), [(False, ""), (True, " ipset")])
def test_missing_programs_are_named_with_their_packages(
    enforces_policies: bool, further: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "lacking_privileges", lambda: "")
    monkeypatch.setattr(machine, "CNI_PLUGINS", tmp_path)
    monkeypatch.setattr(machine, "search_path", lambda: str(tmp_path))
    with pytest.raises(MissingMachine) as missing:
        require_machine(enforces_policies=enforces_policies)
    packages = f"conntrack containernetworking-plugins iproute2{further} iptables mount procps runc util-linux"
    assert str(missing.value) == f"a node needs more programs: apt-get install {packages}"


def test_missing_privileges_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(
        MissingMachine, match=r"^a node needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN: run it as root$"
    ):
        require_machine()


def test_an_image_has_one_program_as_its_entry_point(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(b"program")
    write_image(program, "localhost/pause:1", tmp_path / "pause.tar")
    with tarfile.open(tmp_path / "pause.tar") as archive:
        files = {name: archive.extractfile(name) for name in archive.getnames()}
        (manifest,) = json.load(files["manifest.json"])  # type: ignore[arg-type]
        config = json.load(files[manifest["Config"]])  # type: ignore[arg-type]
        with tarfile.open(fileobj=files[manifest["Layers"][0]]) as layer:
            assert [(each.name, oct(each.mode)) for each in layer] == [("pause", "0o755")]
    assert manifest["RepoTags"] == ["localhost/pause:1"]
    assert config["config"]["Entrypoint"] == ["/pause"]


def test_denied_calls_are_those_of_our_service_accounts(tmp_path: Path) -> None:
    def event(user: str, code: int) -> str:
        status = {"code": code, "message": "no"}
        return json.dumps({"user": {"username": user}, "verb": "list", "requestURI": "/x", "responseStatus": status})

    ours = "system:serviceaccount:placement-webhook:placement-webhook"
    log = tmp_path / "audit.log"
    log.write_text("\n".join([event(ours, 200), event("admin", 403), event(ours, 403), event(ours, 403)]) + "\n")
    assert denied_calls(log, 0) == [f"{ours}: list /x: no"]
    assert denied_calls(log, log.stat().st_size) == []

"""`certs rotate` asks the controller for a rotation; test_healing.py has the rotation itself."""

from pathlib import Path

import pytest

from certs.registration import Target
from certs.secret import new_secret
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import Object, fake_api
from tests.support.tls.certificates import FRESH

PLACE = "Secret placement-webhook/placement-webhook-tls"
SECRET = "/api/v1/namespaces/placement-webhook/secrets/placement-webhook-tls"


def stored(*, is_owned: bool) -> Object:
    secret = new_secret(Target(), FRESH, is_owned=is_owned)
    secret["metadata"]["resourceVersion"] = "1"
    return secret


@pytest.mark.parametrize(("flags", "wanted"), [([], "serving"), (["--ca"], "ca")])
def test_the_request_is_written_to_the_secret(certs: Run, tmp_path: Path, flags: list[str], wanted: str) -> None:
    with fake_api() as api:
        api.objects[SECRET] = stored(is_owned=True)
        done = certs("rotate", *flags, "--timeout-seconds", "0", "--kubeconfig", api.kubeconfig(tmp_path))

    assert (done.code, done.output) == (0, f"{PLACE}: rotation requested: {wanted}\n")
    assert [path for path, _ in api.writes] == [SECRET]
    assert wanted in api.objects[SECRET]["metadata"]["annotations"].values()


def test_only_a_secret_of_the_controller_is_rotated(certs: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        where = ("--timeout-seconds", "0", "--kubeconfig", api.kubeconfig(tmp_path))
        of_none = certs("rotate", *where)
        api.objects[SECRET] = stored(is_owned=False)
        of_another = certs("rotate", *where)

    for refused in (of_none, of_another):
        assert refused.code == 2
        assert f"{PLACE}: Required value: a Secret of the certs controller" in refused.errors
    assert api.writes == []

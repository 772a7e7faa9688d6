"""The files of docs/mtls.md are those that the real API server of the tests is started with."""

from pathlib import Path

import yaml

from tests.controlplane.configuration import webhook_authentication
from tests.docs.markdown import ROOT, blocks

PAGE = ROOT / "docs" / "mtls.md"


def test_files_of_the_api_server() -> None:
    admission, kubeconfig = (yaml.safe_load(each.text) for each in blocks(PAGE, "yaml"))

    (plugin,) = admission["plugins"]
    assert admission == webhook_authentication(Path(plugin["configuration"]["kubeConfigFile"]))
    (user,) = kubeconfig["users"]
    assert (kubeconfig["apiVersion"], kubeconfig["kind"]) == ("v1", "Config")
    assert user["name"] == "placement-webhook.placement-webhook.svc"
    assert user["user"].keys() == {"client-certificate", "client-key"}

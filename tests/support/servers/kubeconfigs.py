"""Kubeconfigs of fake API servers."""

import json
from collections.abc import Mapping
from pathlib import Path


def write_kubeconfig(
    folder: Path, url: str, *, token_file: str = "", cluster: Mapping[str, object] | None = None
) -> Path:
    """Write a kubeconfig of the server at `url` into `folder` and return its path.

    `token_file` is the name of a file with the token of the user; empty: the user has none. `cluster` has more fields
    of the cluster.
    """
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url, **(cluster or {})}}],
        "users": [{"name": "u", "user": {"tokenFile": token_file} if token_file else {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(content))
    return file

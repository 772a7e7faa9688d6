"""The manifests of -f and -k: files, folders, URLs, standard input and kustomizations, with their namespace."""

import re
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError

import click

from webhook.admission.missed import created_on_node
from webhook.cli.inputs.files import STANDARD_INPUT, Option, file_option, options, place_of, read_text
from webhook.cli.inputs.policies import is_namespace
from webhook.cli.output.terminal import echo
from webhook.documents.documents import Document, field, parse
from webhook.documents.field import InvalidInput, invalid, required
from webhook.documents.listing import plural
from webhook.kube.names import DNS_LABEL_RULE, is_dns_label
from webhook.watch.trust import trusting_as_go

_FLAG, _KUSTOMIZE = "--filename", "--kustomize"
_URL = re.compile("https?://")
# Source: k8s.io/cli-runtime/pkg/resource/builder.go, FileExtensions
_SUFFIXES = (".json", ".yaml", ".yml")
# The head of a log line, and of the one with which a command of kubectl fails.
# Source: k8s.io/klog/v2/internal/buffer/buffer.go, FormatHeader; k8s.io/component-base/cli/run.go, Run
_KLOG = re.compile(r"""^[IWEF]\d{4} [\d:.]+ +\d+ [^ \]]+:\d+\] (?:"command failed" err=)?""", re.MULTILINE)
_MOST_BYTES = 64 * 1024 * 1024
_MOST_SECONDS = 30


def _read_namespace(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is not None and not is_dns_label(value):
        raise InvalidInput([invalid("--namespace", value, DNS_LABEL_RULE)])
    return value


def namespace_option_with(text: str) -> Option:
    """Return `--namespace` with this help."""
    return click.option("-n", "--namespace", metavar="NAME", callback=_read_namespace, help=text)


namespace_option = namespace_option_with(
    "The namespace, of objects that name none. Default: on a live cluster that of the context, else `default`."
)


# They name manifests, and say how to read them.
pods_options = options(
    file_option(
        "-f",
        "--filename",
        "filenames",
        multiple=True,
        help="YAML or JSON: pods, or objects with pod templates; several documents, a v1 List; a folder, a URL; - for "
        "standard input.",
    ),
    click.option(
        "-k",
        "--kustomize",
        type=click.Path(),
        metavar="DIR",
        help="What `kubectl kustomize DIR` prints, or `kustomize build DIR`.",
    ),
    click.option("-R", "--recursive", is_flag=True, help="Also read the folders in a folder of -f."),
    namespace_option,
    click.option(
        "--strict", is_flag=True, help="Stop at an object that cannot be read. Default: go on with the others."
    ),
)


def read_manifests(filenames: Iterable[str], kustomize: str | None, *, recursive: bool) -> list[Document]:
    """Return the documents of the files, in order, and of the kustomization.

    Raises:
        InvalidInput: one cannot be read or parsed.
    """
    found = []
    for filename in filenames:
        for each in _files(filename, recursive=recursive):
            text = _download(each) if _URL.match(each) else read_text(each, _FLAG)
            found += parse(text, place_of(each))
    return found if kustomize is None else [*found, *parse(_built(kustomize), kustomize)]


def _files(filename: str, *, recursive: bool) -> Iterator[str]:
    if not filename:
        raise InvalidInput([required(_FLAG, "name a file, a folder or a URL; - is standard input")])
    if "://" in filename and not _URL.match(filename) and not Path(filename).exists():
        raise InvalidInput([invalid(_FLAG, filename, "is no URL of http or https, which are the ones that are read")])
    if filename == STANDARD_INPUT or not Path(filename).is_dir():
        yield filename
        return
    inside = Path(filename).rglob("*") if recursive else Path(filename).iterdir()
    files = sorted(str(each) for each in inside if each.suffix in _SUFFIXES and each.is_file())
    if not files:
        remedy = "" if recursive else "; -R also reads its folders"
        raise InvalidInput([invalid(_FLAG, filename, f"holds no {', '.join(_SUFFIXES)} file{remedy}")])
    yield from files


def _download(url: str) -> bytes:
    try:
        trust = trusting_as_go(ssl.create_default_context())
        with urllib.request.urlopen(url, timeout=_MOST_SECONDS, context=trust) as answer:  # noqa: S310 - only http or https
            text: bytes = answer.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InvalidInput([invalid(_FLAG, url, f"cannot be read: {_reason(error)}")]) from error
    if len(text) > _MOST_BYTES:
        raise InvalidInput([invalid(_FLAG, url, f"is larger than {_MOST_BYTES} bytes")])
    return text


def _reason(error: Exception) -> object:
    reason = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    return getattr(reason, "strerror", None) or reason


def _built(folder: str) -> bytes:
    """Return the output of kubectl, or else of kustomize, for the kustomization in `folder`."""
    programs = {"kubectl": "kustomize", "kustomize": "build"}
    program = next((path for name in programs if (path := shutil.which(name))), None)
    if program is None:
        raise InvalidInput([invalid(_KUSTOMIZE, folder, "needs kubectl or kustomize in $PATH")])
    command = [program, programs[Path(program).stem], folder]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - no shell
    if done.returncode:
        message = _KLOG.sub("", done.stderr.decode("utf-8", "replace").strip()).strip('"')
        raise InvalidInput([invalid(_KUSTOMIZE, folder, message)])
    return done.stdout


def unbound(documents: Iterable[Document]) -> list[Document]:
    """Return `documents` without the node of pods that a scheduler has bound, whose number is printed."""
    found, bound = [], 0
    for each in documents:
        if each.content.get("kind") == "Pod" and field(each.content, "status", "phase"):
            spec = each.content.get("spec")
            if isinstance(spec, dict) and spec.get("nodeName") and not created_on_node(each.content):
                bound += 1
                spec = {key: value for key, value in spec.items() if key != "nodeName"}
                each = Document(each.place, {**each.content, "spec": spec})
        found.append(each)
    if bound:
        echo(f"{plural(bound, 'pod')} with a node: evaluated without spec.nodeName", err=True)
    return found


def with_namespace(documents: Iterable[Document], namespace: str) -> list[Document]:
    """Return `documents` in `namespace` if they name none."""
    found = []
    for each in documents:
        metadata = each.content.get("metadata")
        if isinstance(metadata, dict) and not metadata.get("namespace") and not is_namespace(each.content):
            each = Document(each.place, {**each.content, "metadata": {**metadata, "namespace": namespace}})
        found.append(each)
    return found

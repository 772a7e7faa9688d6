"""A policy file with several documents: it is in force as a whole, beside the objects of a cluster."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from tests.support.programs.command import run_alone, run_here
from tests.support.servers.server import write_certificate
from webhook.cli.commands.serve.serve_command import followed_policy, with_objects
from webhook.documents.field import InvalidInput
from webhook.policy.loader import parse_policy
from webhook.policy.policy import Policy
from webhook.runtime.metrics import Metrics
from webhook.serving.policies.in_force import ALL_OBJECTS, Policies
from webhook.serving.policies.policy_file import PolicyFile
from webhook.watch.api_server import ClientConfig

HEAD = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
TEAM = {"matchLabels": {"team": "a"}}
FAILS = [{"name": "untyped", "expect": {"outcome": "Patched"}}]


def document(name: str, selector: Any = None, **spec: Any) -> dict[str, Any]:
    selected = {} if selector is None else {"namespaceSelector": selector}
    return {**HEAD, "metadata": {"name": name}, "spec": spec | selected}


def text(*documents: dict[str, Any]) -> bytes:
    return b"\n---\n".join(map(orjson.dumps, documents))


def as_object(name: str, selector: Any = TEAM, **spec: Any) -> Policy:
    return parse_policy(orjson.dumps(document(name, selector, **spec)), "object")


class Followed:
    """A policy file that is followed, and its metrics."""

    def __init__(self, path: Path, runner: asyncio.Runner) -> None:
        self.path, self.metrics = path, Metrics()
        self._run = runner.run
        self.policies, file = followed_policy(path, self.metrics, knows_labels=True)
        assert file is not None
        self.file: PolicyFile = file

    def written(self, *documents: dict[str, Any]) -> dict[str, tuple[str, int]]:
        """Write the file, which is read at once; return what is in force."""
        self.path.write_bytes(text(*documents))
        self._run(self.file.reload())
        return in_force(self.policies)

    def rows(self) -> set[str]:
        """Return the names in the metric `policy_info`."""
        (family,) = (each for each in self.metrics.registry.collect() if each.name == "placement_webhook_policy_info")
        return {sample.labels["name"] for sample in family.samples}


def in_force(policies: Policies) -> dict[str, tuple[str, int]]:
    """Return the source and the priority of each policy in force."""
    described = policies.describe()["policies"]
    return {name: (each["source"].partition(" ")[0], each["priority"]) for name, each in described.items()}


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    path = tmp_path / "policies.yaml"
    path.write_bytes(text(document("default"), document("a", TEAM)))
    with asyncio.Runner() as runner:
        yield Followed(path, runner)


def test_all_documents_are_in_force_and_the_namespace_chooses(followed: Followed) -> None:
    found = followed.policies.in_force()
    assert [found.of_namespace("x", labels).name for labels in ({"team": "a"}, {}, None)] == ["a", "default", "default"]
    assert followed.rows() == {"default", "a"}
    described = followed.policies.describe()["policies"]
    selectors = {name: each["namespaceSelector"] for name, each in described.items()}
    assert selectors == {"default": None, "a": TEAM | {"matchExpressions": []}}


def test_the_file_is_replaced_as_a_whole(followed: Followed) -> None:
    found = followed.written(document("b", TEAM, priority=2), document("all", priority=1))
    assert found == {"all": ("file", 1), "b": ("file", 2)}
    assert followed.policies.current().name == "all"


@pytest.mark.parametrize(
    ("documents", "error"),
    [
        pytest.param([document("default"), document("a", TEAM, x=1)], "document 2 (a): spec.x: Forbidden", id="field"),
        pytest.param(
            [document("default"), document("a", TEAM, tests=FAILS)],
            "document 2 (a): spec.tests[0].expect.outcome",
            id="test case",
        ),
        pytest.param([document("b", TEAM), document("a", TEAM)], "one of the policies must have no", id="no default"),
    ],
)
def test_one_bad_document_leaves_all_of_the_last_good_file_in_force(
    followed: Followed, documents: list[dict[str, Any]], error: str
) -> None:
    before = followed.policies.in_force()
    followed.written(*documents)
    assert followed.policies.in_force() is before
    assert error in followed.policies.note()


def test_an_object_is_beside_the_file_and_before_its_policy_of_the_same_name(followed: Followed) -> None:
    followed.policies.put_objects([as_object("a", priority=7), as_object("c")])
    assert in_force(followed.policies) == {
        "default": ("file", 0),
        "a": ("PlacementPolicy", 7),
        "c": ("PlacementPolicy", 0),
    }
    followed.policies.put_objects([as_object("default", None, priority=5)])
    assert in_force(followed.policies) == {"default": ("PlacementPolicy", 5), "a": ("file", 0)}
    followed.policies.put_objects([])
    assert in_force(followed.policies) == {"default": ("file", 0), "a": ("file", 0)}


def test_an_object_with_the_name_of_the_default_policy_is_shown_beside_it_and_warned_of(followed: Followed) -> None:
    followed.written(document("all", priority=1))
    with_objects(ClientConfig(None).connect, followed.policies, followed.file, followed.metrics)
    with structlog.testing.capture_logs() as logs:
        followed.policies.put_objects([as_object("all", priority=7)])

    assert in_force(followed.policies) == {"all (default)": ("file", 1), "all": ("PlacementPolicy", 7)}
    *_, warning = logs
    default, other = followed.policies.in_force()
    assert (warning["log_level"], warning["event"]) == ("warning", "two policies have one name")
    assert (warning["default"], warning["other"]) == (default.identity, other.identity)


def test_a_changed_policy_of_some_namespaces_is_applied_while_an_object_is_the_default(followed: Followed) -> None:
    before = followed.policies.current().identity
    followed.policies.put_objects([as_object("default", None, mode="shadow")])
    with structlog.testing.capture_logs() as logs:
        assert followed.written(document("default"), document("a", TEAM, priority=3))["a"] == ("file", 3)
    # The policies of the file, which the event is about.
    assert [(each["event"], each["previous"]) for each in logs] == [("policy applied", before)]


def test_a_follower_that_fails_keeps_no_other_one_from_the_change(followed: Followed) -> None:
    found: list[str] = []

    def fail(_: Policy) -> None:
        raise ZeroDivisionError("out of order")

    for follower in (fail, lambda policy: found.append(policy.identity), fail):
        followed.policies.follow(follower)
    with structlog.testing.capture_logs() as logs:
        followed.written(document("default", priority=5))
    assert found == [followed.policies.current().identity]
    assert [each["event"] for each in logs] == ["policy applied", *["a follower of the policy failed"] * 2]


def test_the_log_has_all_policies_and_those_that_are_never_in_force(followed: Followed) -> None:
    with structlog.testing.capture_logs() as logs:
        followed.written(document("default"), document("a", TEAM), document("twin", TEAM))
    applied, conflict = logs
    assert [each.partition("@")[0] for each in applied["others"]] == ["a", "twin"]
    assert conflict["error"].startswith("twin: a has the same priority and namespaceSelector")


@pytest.mark.parametrize("name", ["default", "a"])
def test_another_key_domain_of_any_document_needs_a_registration(followed: Followed, name: str) -> None:
    changed = {each: {"keyDomain": "example.com"} if each == name else {} for each in ("default", "a")}
    with structlog.testing.capture_logs() as logs:
        followed.written(document("default", **changed["default"]), document("a", TEAM, **changed["a"]))
    assert ["certs register --policy" in each["event"] for each in logs] == [False, True]


def test_without_a_view_of_the_cluster_policies_select_by_the_name_of_the_namespace_alone(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    by_name = {"matchLabels": {"kubernetes.io/metadata.name": "a"}}
    read = partial(followed_policy, path, Metrics(), knows_labels=False)

    path.write_bytes(text(document("default"), document("a", by_name)))
    assert set(in_force(read()[0])) == {"default", "a"}
    path.write_bytes(text(document("a", TEAM)))
    assert set(in_force(read()[0])) == {"a"}
    for selector in (TEAM, {"matchLabels": by_name["matchLabels"] | TEAM["matchLabels"]}):
        path.write_bytes(text(document("default"), document("a", selector)))
        with pytest.raises(InvalidInput, match=r"document 2 \(a\): spec.namespaceSelector: Forbidden: the labels"):
            read()


@pytest.mark.slow
def test_serve_ends_with_code_2_where_it_could_never_select(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    path = tmp_path / "policies.yaml"
    path.write_bytes(text(document("default"), document("a", TEAM)))

    outcome = run_alone("serve", "--tls-dir", tmp_path, "--policy", path, "--no-cluster", "--listen", "127.0.0.1:0")

    assert outcome.code == 2
    assert "give --in-cluster, --kubeconfig or --cluster" in outcome.errors


@pytest.mark.parametrize("command", [("certs", "manifest"), ("certs", "register"), ("certs", "controller")])
def test_a_second_file_is_an_error_where_it_would_replace_the_first(command: tuple[str, ...]) -> None:
    outcome = run_here(*command, "--policy", "default.yaml", "--policy", "team-a.yaml")

    assert outcome.code == 2
    assert "--policy can be given once here: one file can hold several policies." in outcome.errors


@pytest.mark.slow
def test_serve_uses_the_last_file_as_the_last_value_of_each_flag(tmp_path: Path) -> None:
    """The chart sets the flag, and `extraArgs` are after it."""
    write_certificate(tmp_path)
    first, last = (tmp_path / name for name in ("absent.yaml", "last.yaml"))
    last.write_bytes(text(document("last", unknown=1)))

    outcome = run_alone("serve", "--tls-dir", tmp_path, "--policy", first, "--policy", last, "--no-cluster")

    warning, *errors = outcome.errors.splitlines()
    logged = orjson.loads(warning)
    assert (logged["level"], logged["event"]) == ("warning", "--policy is given several times")
    assert (logged["used"], logged["ignored"]) == (str(last), [str(first)])
    assert outcome.code == 2
    assert str(first) not in str(errors)
    assert errors[0].startswith(f"Error: {last}")


def test_the_file_of_the_environment_is_one_with_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACEMENT_WEBHOOK_POLICY", f"{tmp_path}/none:of these.yaml")

    outcome = run_here("serve", "--tls-dir", tmp_path)

    assert outcome.code == 2
    assert f'--policy: Invalid value: "{tmp_path}/none:of these.yaml"; cannot be read' in outcome.errors


def policies_at(times: Iterator[str]) -> tuple[Policies, Metrics]:
    metrics = Metrics()
    return Policies(parse_policy(orjson.dumps(document("default")), "f"), metrics, lambda: next(times)), metrics


def test_a_rejection_of_an_object_is_logged_and_counted_once_until_its_errors_change() -> None:
    policies, metrics = policies_at(iter(["t0"]))

    with structlog.testing.capture_logs() as logs:
        for errors in (("one",), ("one",), ("two",), ("two",)):
            policies.reject_objects({"team": errors})

    assert [each["errors"] for each in logs] == [("one",), ("two",)]
    assert metrics.registry.get_sample_value("placement_webhook_policy_reloads_total", {"result": "rejected"}) == 2
    assert metrics.registry.get_sample_value("placement_webhook_policy_rejected") == 1
    policies.reject_objects({})
    assert metrics.registry.get_sample_value("placement_webhook_policy_rejected") == 0


def test_a_rejected_object_without_a_good_generation_has_another_note() -> None:
    """That of all objects has one: those that are in force."""
    notes = []
    for name in ("known", "never", ALL_OBJECTS):
        policies, _ = policies_at(iter(["t0", "t1"]))
        policies.put_objects([as_object("known")])
        policies.reject_objects({name: ("an error",)})
        notes.append(policies.note())

    known, never, of_all = notes
    assert known == of_all != never
    assert all(note.endswith(": an error") for note in notes)


def test_the_time_of_the_policy_in_force_is_that_of_its_last_change() -> None:
    policies, _ = policies_at(iter(["t0", "t1", "t2"]))
    assert policies.describe()["loadedAt"] == "t0"

    policies.put_objects([as_object("team")])
    assert policies.describe()["loadedAt"] == "t0"
    policies.replace(parse_policy(orjson.dumps(document("default", keyDomain="example.com")), "f"))
    assert policies.describe()["loadedAt"] == "t1"

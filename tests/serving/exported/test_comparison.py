"""One pass of the exported policy over the objects of a cluster: what is written and removed, and what is reported."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import jsonpatch
import pytest
from structlog.testing import capture_logs

from tests.support.admission import policy_with
from tests.support.on_cluster.exported import ADMISSION, NAME, exported
from tests.support.servers.server import policies_of
from webhook.kube.api.admission_policy import MANAGER, _with_defaults
from webhook.kube.names import MANAGED_BY_LABEL
from webhook.kube.release import Release
from webhook.mutation.exported import Exported, LeftOut
from webhook.policy.policy_set import PolicySet
from webhook.runtime.metrics import Metrics
from webhook.serving.exported import exported_policy as module
from webhook.serving.exported.exported_policy import ExportedPolicy, ExportOptions
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer
from webhook.watch.lease import LeaseOptions
from webhook.watch.store import ObjectsByName

Object = dict[str, Any]
POLICY, BINDING = "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/placement-webhook-exported"
OWNER = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "name": "placement-webhook-exported",
    "uid": "uid-of-role",
}


def path(plural: str, name: str = NAME) -> str:
    return f"/apis/{ADMISSION}/{plural}/{name}"


class Cluster:
    """An API server with objects by path. `fails` has the status by verb and plural, `calls` what was written."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.fails: dict[tuple[str, str], int] = {}
        self.calls: list[tuple[str, str]] = []
        self.message = ""

    def _called(self, verb: str, where: str) -> None:
        plural = where.split("/")[-2]
        if verb != "get":
            self.calls.append((verb, plural))
        if (code := self.fails.get((verb, plural))) is not None:
            raise ApiServerError(f"{code} for {verb} {plural}{self.message}", code)

    async def get(self, where: str, *_: object, **__: object) -> Object:
        self._called("get", where)
        if where not in self.objects:
            raise ApiServerError("not found", 404)
        return self.objects[where]

    async def apply(self, where: str, content: Object, _: object) -> Object:
        self._called("apply", where)
        self.objects[where] = self._stored(content, "1")
        return self.objects[where]

    async def patch(self, where: str, operations: list[Object], _: object) -> Object:
        self._called("patch", where)
        before = self.objects[where]
        after = jsonpatch.apply_patch(before, operations)
        if after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]:
            raise ApiServerError("conflict", 409)
        self.objects[where] = self._stored(after, f"{int(before['metadata']['resourceVersion']) + 1}")
        return self.objects[where]

    async def delete(self, where: str, options: Object) -> None:
        self._called("delete", where)
        assert options["preconditions"] == {"uid": self.objects[where]["metadata"]["uid"]}
        del self.objects[where]

    @staticmethod
    def _stored(content: Object, version: str) -> Object:
        metadata = {"uid": f"uid-of-{content['metadata']['name']}", **content["metadata"], "resourceVersion": version}
        return deepcopy({**content, "metadata": metadata, "spec": _with_defaults(content["spec"])})

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[ApiServer]:
        yield cast("ApiServer", self)


class Notes:
    """The pacing of writes, which counts the passes that wrote."""

    count = 0

    def note(self, _: float) -> None:
        self.count += 1

    def pause_seconds(self, _: float) -> float:
        return 0.0


class Site:
    """The exporter of a cluster. A pass sees the objects as the watch has reported them."""

    def __init__(self, *, is_known: bool = True) -> None:
        self.cluster, self.metrics, self.notes, self.faults = Cluster(), Metrics(), Notes(), list[str]()
        self.policies = policies_of(policy_with(), self.metrics)
        self.is_known = is_known
        self.left_out: list[LeftOut] = []
        self.exported = ExportedPolicy(
            self.cluster.connect,
            self.policies.in_force,
            lambda: self.is_known,
            self.export,
            ExportOptions(LeaseOptions("default", "lease", "replica-a")),
            self.metrics,
            lambda: self.faults.append("fault"),
        )
        self.stores = {each: ObjectsByName() for each in module._resources(Release(36))}

    def export(self, policies: PolicySet, *_: object) -> Exported:
        found = exported(policies)
        return Exported(found.objects, self.left_out, [])

    def pass_(self, *, sees: bool = True) -> list[tuple[str, str]]:
        """Return the writes of one pass."""
        self.cluster.calls.clear()
        for resource, store in self.stores.items():
            if sees and not store.is_unknown:
                prefix = f"/apis/{ADMISSION}/{resource.plural}/"
                found = {key: each for key, each in self.cluster.objects.items() if key.startswith(prefix)}
                store.replace({key.removeprefix(prefix): each for key, each in found.items()})
        compare = self.exported._compare
        asyncio.run(self.exported._guarded(lambda: compare(Release(36), self.stores, cast("Any", self.notes))))
        return self.cluster.calls

    @property
    def in_step(self) -> float | None:
        return self.metrics.registry.get_sample_value("placement_webhook_exported_policy_in_step")


def test_what_differs_is_written_and_a_pass_without_a_difference_writes_nothing() -> None:
    site = Site()
    assert sorted(site.pass_()) == [("apply", POLICY), ("apply", BINDING)]
    assert (site.in_step, site.notes.count) == (1, 1)
    assert site.pass_() == []
    site.policies.replace(policy_with(productAffinity=False))
    assert sorted(site.pass_()) == [("patch", POLICY), ("patch", BINDING)]
    assert site.pass_() == []
    assert (site.in_step, site.notes.count) == (1, 2)


@pytest.mark.parametrize("is_owned", [False, True])
def test_the_objects_have_the_role_as_owner_if_it_exists(*, is_owned: bool) -> None:
    site = Site()
    if is_owned:
        site.cluster.objects[ROLE] = {"metadata": {"uid": "uid-of-role"}}
    site.pass_()
    for plural in (POLICY, BINDING):
        owners = site.cluster.objects[path(plural)]["metadata"].get("ownerReferences")
        assert owners == ([OWNER] if is_owned else None)
    # A role that is made later owns the objects that exist.
    site.cluster.objects[ROLE] = {"metadata": {"uid": "uid-of-role"}}
    assert len(site.pass_()) == (0 if is_owned else 2)
    assert site.cluster.objects[path(POLICY)]["metadata"]["ownerReferences"] == [OWNER]


def test_labels_of_others_stay_and_own_ones_are_restored() -> None:
    site = Site()
    site.pass_()
    metadata = site.cluster.objects[path(POLICY)]["metadata"]
    metadata["labels"] = {"by": "another", MANAGED_BY_LABEL: "another"}
    metadata["annotations"] |= {"note": "of another", "maip.mxsf.io/exported": "other@1"}
    assert site.pass_() == [("patch", POLICY)]
    metadata = site.cluster.objects[path(POLICY)]["metadata"]
    assert metadata["labels"] == {"by": "another", MANAGED_BY_LABEL: MANAGER}
    identity = site.policies.current().identity
    assert metadata["annotations"] == {"note": "of another", "maip.mxsf.io/exported": identity}


def test_objects_that_are_not_wanted_are_removed_unless_they_are_of_others() -> None:
    site = Site()
    site.pass_()
    own = site.cluster.objects[path(POLICY)]
    site.cluster.objects[path(POLICY, "old")] = own | {"metadata": own["metadata"] | {"name": "old", "uid": "u-old"}}
    of_another = own["metadata"] | {"name": "team.example.com", "labels": {}, "uid": "u-team"}
    site.cluster.objects[path(POLICY, "team.example.com")] = own | {"metadata": of_another}

    assert (site.pass_(), site.notes.count) == ([("delete", POLICY)], 2)
    site.policies.replace(policy_with(mode="shadow"))
    assert sorted(site.pass_()) == [("delete", POLICY), ("delete", BINDING)]
    assert [*site.cluster.objects] == [path(POLICY, "team.example.com")]
    assert (site.pass_(), site.notes.count, site.in_step) == ([], 3, 1)


@pytest.mark.parametrize("code", [404, 409])
@pytest.mark.parametrize("verb", ["apply", "patch", "delete"])
def test_a_change_of_another_client_is_no_failure(verb: str, code: int) -> None:
    site = Site()
    if verb != "apply":
        site.pass_()
        spec = {"mode": "shadow"} if verb == "delete" else {"productAffinity": False}
        site.policies.replace(policy_with(**spec))
    site.cluster.fails[verb, POLICY] = code
    with capture_logs() as logs:
        assert len(site.pass_()) == 2
    assert site.in_step == 1
    assert [each["log_level"] for each in logs if each["log_level"] == "error"] == []


def test_a_refused_object_is_reported_once_and_again_after_a_success() -> None:
    site = Site()

    def events() -> list[str]:
        with capture_logs() as logs:
            site.pass_()
        return [each["log_level"] for each in logs if "in step" in each["event"]]

    for _time in range(2):
        site.cluster.fails["apply", POLICY] = 422
        assert [events(), events()] == [["error"], []]
        assert (site.in_step, [*site.cluster.objects]) == (0, [path(BINDING)]), "the other object is written"
        site.cluster.fails.clear()
        assert [events(), events()] == [["info"], []]
        assert site.in_step == 1
        site.cluster.objects.pop(path(POLICY))
    assert site.faults == []


@pytest.mark.parametrize("fails", [("get", "clusterroles"), ("apply", POLICY)])
def test_a_pass_ends_where_the_api_server_does_not_answer(fails: tuple[str, str]) -> None:
    site = Site()
    site.cluster.fails[fails] = 0
    site.pass_()
    assert (site.in_step, site.cluster.objects, site.faults) == (0, {}, [])


def test_nothing_is_compared_before_the_policies_and_all_kinds_are_known() -> None:
    site = Site(is_known=False)
    assert site.pass_() == []
    site = Site()
    assert site.pass_(sees=False) == []
    first, second = site.stores.values()
    first.replace({})
    assert site.pass_(sees=False) == []
    second.replace({})
    assert len(site.pass_(sees=False)) == 2


@pytest.mark.parametrize(("unknown", "written"), [(0, BINDING), (1, POLICY)])
def test_a_kind_that_cannot_be_read_is_reported_and_the_other_one_written(unknown: int, written: str) -> None:
    site = Site()
    [*site.stores.values()][unknown].mark_unknown("")
    with capture_logs() as logs:
        assert site.pass_() == [("apply", written)]
    assert site.in_step == 0
    (error,) = [each["error"] for each in logs if each["log_level"] == "error"]
    assert error.startswith((POLICY, BINDING)[unknown] + " of ")


def test_objects_are_written_before_others_are_removed_and_only_as_they_were_seen() -> None:
    site = Site()
    site.pass_()
    own = site.cluster.objects[path(POLICY)]
    site.cluster.objects[path(POLICY, "old")] = own | {"metadata": own["metadata"] | {"name": "old", "uid": "u-old"}}
    site.policies.replace(policy_with(productAffinity=False))
    assert [verb for verb, _ in site.pass_()] == ["patch", "patch", "delete"]

    # Another client has changed the policy since the watch reported it.
    site.pass_()
    seen = site.cluster.objects[path(POLICY)]
    changed = deepcopy(seen)
    changed["metadata"]["resourceVersion"] = "9"
    site.cluster.objects[path(POLICY)] = changed
    site.policies.replace(policy_with(productAffinity=True))
    assert len(site.pass_(sees=False)) == 2
    assert site.cluster.objects[path(POLICY)] == changed
    site.pass_()
    assert site.cluster.objects[path(POLICY)]["spec"] != changed["spec"]


def test_the_error_of_a_refused_object_is_cut() -> None:
    site = Site()
    site.cluster.fails["apply", POLICY] = 422
    site.cluster.message = "x" * 5000
    with capture_logs() as logs:
        site.pass_()
    assert [len(each["error"]) for each in logs if each["log_level"] == "error"] == [2000]


@pytest.mark.parametrize(("code", "writes"), [(404, 2), (403, 0), (503, 0)])
def test_without_the_webhook_configuration_nothing_is_written_unless_there_is_none(code: int, writes: int) -> None:
    site = Site()
    site.exported._options = replace(site.exported._options, configuration="webhook")
    site.cluster.fails["get", "mutatingwebhookconfigurations"] = code
    assert len(site.pass_()) == writes
    assert site.in_step == (1 if writes else 0)


def test_what_is_left_out_is_logged_when_it_changes() -> None:
    site = Site()
    one, two = LeftOut("default", "spec.a", "no CEL"), LeftOut("default", "spec.b", "no CEL")
    found = []
    for left_out in ([one], [one], [one, two], [], [], [one, two]):
        site.left_out = left_out
        with capture_logs() as logs:
            site.pass_()
        found.append([len(each["left_out"]) for each in logs if "left_out" in each])
    assert found == [[1], [], [2], [], [], [2]]


def test_a_change_during_a_pass_is_compared_in_the_next_one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    site, passes = Site(), list[int]()

    async def compare(*_: object) -> None:
        passes.append(len(passes))
        site.exported.policy_changed()

    async def released(_: ApiServer) -> Release:
        return Release(36 if len(passes) < 2 else 37)

    class Idle:
        def __init__(self, *_: object, **__: object) -> None: ...

        async def run(self) -> None:
            await asyncio.Event().wait()

    async def follow() -> None:
        async with asyncio.timeout(60):
            await site.exported._follow()

    monkeypatch.setattr(site.exported, "_compare", compare)
    monkeypatch.setattr(module, "read_release", released)
    monkeypatch.setattr(module, "Reflector", Idle)
    asyncio.run(follow())
    assert passes == [0, 1]


def test_a_replica_that_is_no_longer_the_leader_does_not_report_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    site, states, reported = Site(), list[float | None](), asyncio.Event()

    async def follow() -> None:
        states.append(site.in_step)
        site.exported._report("")
        reported.set()
        await asyncio.Event().wait()

    async def lead_and_lose() -> None:
        leading = asyncio.create_task(site.exported._keep())
        async with asyncio.timeout(60):
            await reported.wait()
        states.append(site.in_step)
        leading.cancel()
        with suppress(asyncio.CancelledError):
            await leading

    monkeypatch.setattr(site.exported, "_follow", follow)
    asyncio.run(lead_and_lose())
    assert states == [0, 1]
    assert math.isnan(site.in_step or 0)

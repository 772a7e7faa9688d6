"""The exported policy is kept in step with the policy in force, on a real API server."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.support.admission import policy_with
from tests.support.on_cluster.exported import ADMISSION, NAME, Replica, exported, run, settled, stored
from tests.support.on_cluster.service_account import RBAC, limited_to
from tests.support.servers.live import until
from webhook.kube.api.admission_policy import ObjectId
from webhook.kube.release import Release
from webhook.mutation.exported import Exported, LeftOut
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet
from webhook.serving.exported import exported_policy as module
from webhook.watch.api_server import ApiServer, ClientConfig

POLICY, BINDING = f"MutatingAdmissionPolicy {NAME}", f"MutatingAdmissionPolicyBinding {NAME}"
BOTH = {POLICY, BINDING}


def make_replica(cluster: Cluster, **options: object) -> Replica:
    return Replica(cluster.control_plane.kubeconfig, cluster.namespace, exported, **options)  # type: ignore[arg-type]


def is_of(cluster: Cluster, policy: Policy) -> bool:
    return revision_in(cluster) == policy.identity


def revision_in(cluster: Cluster) -> str:
    found = cluster.client.get("MutatingAdmissionPolicy", NAME, api_version=ADMISSION)
    return str(found["metadata"]["annotations"]["maip.mxsf.io/exported"])


def test_objects_follow_the_policy_in_force_also_back_and_into_shadow_mode(cluster: Cluster) -> None:
    async def follow() -> None:
        replica = make_replica(cluster)
        async with replica.running():
            await settled(cluster.client, BOTH)
            first, second = replica.policies.current(), policy_with(productAffinity=False)
            for policy in (second, first):
                replica.policies.replace(policy)
                await until(partial(is_of, cluster, policy))
            await until(lambda: replica.in_step == 1)
            replica.policies.replace(policy_with(mode="shadow"))
            await settled(cluster.client, set())

    run(follow)


def test_a_foreign_edit_is_corrected_and_a_deleted_binding_made_again(cluster: Cluster) -> None:
    condition = {"name": "never", "expression": "false"}
    edits: list[Object] = [
        {"spec": {"matchConditions": [condition]}},
        {"spec": {"failurePolicy": "Ignore"}},
        {"metadata": {"annotations": {"maip.mxsf.io/exported": "other@1"}}},
        {"metadata": {"labels": None}},
    ]

    async def follow() -> None:
        replica = make_replica(cluster)
        async with replica.running():
            made = await settled(cluster.client, BOTH)
            await until(lambda: replica.in_step == 1)
            for edit in edits:
                cluster.client.patch("MutatingAdmissionPolicy", NAME, edit, api_version=ADMISSION)
                await until(lambda: parts(stored(cluster.client)) == parts(made))
            cluster.client.delete("MutatingAdmissionPolicyBinding", NAME, api_version=ADMISSION)
            await settled(cluster.client, BOTH)

    run(follow)


def parts(objects: dict[ObjectId, Object]) -> dict[str, tuple[object, ...]]:
    kept = ("labels", "annotations")
    return {str(key): (each["spec"], *(each["metadata"].get(k) for k in kept)) for key, each in objects.items()}


def test_policies_of_others_stay(cluster: Cluster) -> None:
    _, foreign = exported(PolicySet(policy_with())).objects
    cluster.create(foreign | {"metadata": {"name": "team.example.com"}})

    async def follow() -> None:
        replica = make_replica(cluster)
        async with replica.running():
            await until(lambda: replica.in_step == 1)
            replica.policies.replace(policy_with(mode="shadow"))
            await settled(cluster.client, {"MutatingAdmissionPolicy team.example.com"})

    try:
        run(follow)
    finally:
        cluster.client.delete("MutatingAdmissionPolicy", "team.example.com", api_version=ADMISSION)


def test_a_pass_without_a_difference_writes_nothing(cluster: Cluster) -> None:
    async def follow() -> None:
        replica = make_replica(cluster)
        async with replica.running():
            made = await settled(cluster.client, BOTH)
            await until(lambda: replica.in_step == 1)
            with capture_logs() as logs:
                replica.policies.put_objects([])
                replica.exported.policy_changed()
                await until(lambda: not replica.exported._changed.is_set())
            assert [each for each in logs if each["event"] == "the exported policy is changed"] == []
            assert stored(cluster.client) == made

    run(follow)


def test_one_replica_writes_and_another_takes_over(cluster: Cluster) -> None:
    replicas = [
        make_replica(cluster, name="first"),
        make_replica(cluster, name="second", policy=policy_with(productAffinity=False)),
    ]

    async def follow() -> None:
        runs = [replica.running() for replica in replicas]
        for each in runs:
            await each.__aenter__()
        await until(lambda: 1 in [each.in_step for each in replicas])
        leader = [each.in_step for each in replicas].index(1)
        other = replicas[1 - leader]
        assert revision_in(cluster) == replicas[leader].policies.current().identity
        assert math.isnan(other.in_step)
        await runs[leader].__aexit__(None, None, None)
        await until(lambda: revision_in(cluster) == other.policies.current().identity)
        await until(lambda: other.in_step == 1)
        assert math.isnan(replicas[leader].in_step)
        await runs[1 - leader].__aexit__(None, None, None)

    run(follow)


def test_objects_are_deleted_with_their_owner(cluster: Cluster, tmp_path: Path) -> None:
    cluster.control_plane.start_controller_manager("garbage-collector-controller")
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": NAME}, "rules": []}
    cluster.client.create(role)

    async def follow() -> None:
        replica = make_replica(cluster, owner=NAME)
        async with replica.running():
            await settled(cluster.client, BOTH)
            await until(lambda: replica.in_step == 1)
        cluster.client.delete("ClusterRole", NAME, api_version=RBAC)
        await settled(cluster.client, set())

    try:
        run(follow)
    finally:
        cluster.control_plane.stop_controller_manager()


def test_an_object_that_the_api_server_refuses_is_reported_and_the_others_are_written(cluster: Cluster) -> None:
    def with_a_fault(policies: PolicySet, *_: object) -> Exported:
        binding, policy = exported(policies).objects
        policy["spec"]["mutations"][0]["jsonPatch"]["expression"] = "not CEL"
        return Exported([binding, policy], [LeftOut("default", "spec.example", "no CEL")], [])

    async def follow() -> None:
        replica = Replica(cluster.control_plane.kubeconfig, cluster.namespace, with_a_fault)
        with capture_logs() as logs:
            async with replica.running():
                await settled(cluster.client, {BINDING})
                await until(lambda: any(each["log_level"] == "error" for each in logs))
                assert replica.in_step == 0
        (error,) = [each for each in logs if each["log_level"] == "error"]
        assert "422" in error["error"]
        assert any(each.get("left_out") == ["default: spec.example: no CEL"] for each in logs)

    run(follow)


def test_nothing_is_written_until_the_policies_in_force_are_known(cluster: Cluster) -> None:
    answers, is_known = [], False

    def known() -> bool:
        answers.append(is_known)
        return is_known

    async def follow() -> None:
        nonlocal is_known
        replica = make_replica(cluster, is_known=known)
        async with replica.running():
            # Two passes ask twice each.
            await until(lambda: len(answers) > 3)
            assert stored(cluster.client) == {}
            is_known = True
            await settled(cluster.client, BOTH)

    run(follow)


def test_a_change_of_another_client_during_a_write_is_no_failure(cluster: Cluster) -> None:
    writes = 0

    @asynccontextmanager
    async def connect() -> AsyncIterator[ApiServer]:
        async with ClientConfig(cluster.control_plane.kubeconfig).connect() as api:
            patch = api.patch

            async def patch_late(path: str, *given: Any) -> Object:
                nonlocal writes
                if NAME in path and (writes := writes + 1) == 1:
                    labels = {"metadata": {"labels": {"by": "another"}}}
                    cluster.client.patch("MutatingAdmissionPolicy", NAME, labels, api_version=ADMISSION)
                return await patch(path, *given)

            api.patch = patch_late  # type: ignore[method-assign, assignment]
            yield api

    async def follow() -> None:
        replica, policy = make_replica(cluster, connect=connect), policy_with(productAffinity=False)
        with capture_logs() as logs:
            async with replica.running():
                await settled(cluster.client, BOTH)
                await until(lambda: replica.in_step == 1)
                cluster.client.delete("MutatingAdmissionPolicyBinding", NAME, api_version=ADMISSION)
                replica.policies.replace(policy)
                await until(lambda: writes > 1 and is_of(cluster, policy))
        assert [each for each in logs if each["log_level"] == "error"] == []

    run(follow)


def test_an_object_that_another_client_has_replaced_is_not_deleted(cluster: Cluster) -> None:
    (_, foreign), deletions = exported(PolicySet(policy_with())).objects, list[str]()
    foreign |= {"metadata": {"name": NAME}}

    @asynccontextmanager
    async def connect() -> AsyncIterator[ApiServer]:
        async with ClientConfig(cluster.control_plane.kubeconfig).connect() as api:
            delete = api.delete

            async def delete_late(path: str, options: Object) -> None:
                if "/mutatingadmissionpolicies/" in path and path not in deletions:
                    cluster.client.delete("MutatingAdmissionPolicy", NAME, api_version=ADMISSION)
                    cluster.create(foreign)
                try:
                    await delete(path, options)
                finally:
                    deletions.append(path)

            api.delete = delete_late  # type: ignore[method-assign, assignment]
            yield api

    async def follow() -> None:
        replica = make_replica(cluster, connect=connect)
        async with replica.running():
            await settled(cluster.client, BOTH)
            await until(lambda: replica.in_step == 1)
            replica.policies.replace(policy_with(mode="shadow"))
            await until(lambda: len(deletions) == 2)
            assert [*map(str, stored(cluster.client))] == [POLICY]

    try:
        run(follow)
    finally:
        cluster.client.delete("MutatingAdmissionPolicy", NAME, api_version=ADMISSION)


def test_the_objects_are_those_of_the_release_after_an_upgrade(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, written = [Release(36)], []

    async def read_release(_: ApiServer) -> Release:
        return running[-1]

    def of_release(policies: PolicySet, release: Release, _: Object | None) -> Exported:
        written.append(release.minor)
        return exported(policies)

    async def follow() -> None:
        replica = Replica(cluster.control_plane.kubeconfig, cluster.namespace, of_release)
        async with replica.running():
            await settled(cluster.client, BOTH)
            running.append(Release(37))
            replica.exported.policy_changed()
            await until(lambda: written[-1] == 37)
        assert set(written) == {36, 37}

    monkeypatch.setattr(module, "read_release", read_release)
    run(follow)


def test_a_kind_that_cannot_be_read_is_not_written(cluster: Cluster, tmp_path: Path) -> None:
    groups, kinds = ["admissionregistration.k8s.io"], ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"]
    rules = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [RBAC.partition("/")[0]], "resources": ["clusterroles"], "verbs": ["get"]},
        {"apiGroups": groups, "resources": kinds, "verbs": ["create", "patch"]},
        {"apiGroups": groups, "resources": kinds[1:], "verbs": ["list", "watch"]},
    ]
    with limited_to(cluster, tmp_path, rules) as kubeconfig:

        async def follow() -> None:
            replica = Replica(kubeconfig, cluster.namespace, exported)
            with capture_logs() as logs:
                async with replica.running():
                    await settled(cluster.client, {BINDING})
                    await until(lambda: any("in step" in each["event"] for each in logs))
            assert {str(each) for each in stored(cluster.client)} == {BINDING}

        run(follow)


def test_without_rights_the_fault_is_reported(cluster: Cluster, tmp_path: Path) -> None:
    rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]}]
    with limited_to(cluster, tmp_path, rules) as kubeconfig:

        async def follow() -> None:
            replica = Replica(kubeconfig, cluster.namespace, exported)
            with capture_logs() as logs:
                async with replica.running():
                    await until(lambda: any("in step" in each["event"] for each in logs))
                    assert replica.in_step == 0
            (error,) = [each for each in logs if "in step" in each["event"]]
            assert "deploy/overlays/exported" in error["error"]

        run(follow)

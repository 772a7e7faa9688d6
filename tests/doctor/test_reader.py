"""What doctor reads of a cluster: in pages, once, within its time, and nothing that no check needs."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from certs.registration import Target
from placement_doctor.cluster import Cluster, Unprotected
from placement_doctor.kept import kept
from placement_doctor.reader import Wanted, read_cluster
from placement_doctor.registry import CHECKS
from placement_doctor.source import Source
from tests.doctor.healthy import NAMESPACE, configuration, deployment, faults, make_installation, with_args
from tests.support.admission import policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.servers.http_server import http_server
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.server import policies_of
from webhook.cluster.node_info import Node
from webhook.kube.api.admission_policy import PLURALS
from webhook.policy.loader import built_in_policy
from webhook.policy.spec.document import API_VERSION
from webhook.serving.policies.policy_status import GoodGeneration, status_of
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import GONE, ClientConfig

NODES, PODS, NAMESPACES = "/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class Api:
    """An API server with these objects by path, an empty list for another one; `asked` are the requests by path.

    Lists come in pages of two. A request for a path in `silent` has no answer, one for a key of `after` has it after
    the path there was asked for. The first continue token for a path in `expiring` has expired. Each answer has
    `fields`, too.
    """

    def __init__(
        self,
        objects: dict[str, list[Any]],
        silent: frozenset[str] = frozenset(),
        status: int = 200,
        after: Mapping[str, str] = {},
        expiring: frozenset[str] = frozenset(),
        fields: Mapping[str, Any] = {},
    ) -> None:
        self.objects, self.silent, self.status, self.after = objects, silent, status, after
        self.expiring, self.fields = expiring, fields
        self.asked: Counter[str] = Counter()
        self._asked: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked[request.path] += 1
        self._asked[request.path].set()
        if request.path in self.after:
            await self._asked[self.after[request.path]].wait()
        if request.path in self.silent:
            await asyncio.Event().wait()
        items = self.objects.get(request.path, [])
        if request.path in self.expiring and "continue" in request.query:
            self.expiring -= {request.path}
            return web.Response(body=b"{}", status=GONE, content_type="application/json")
        begin = int(request.query.get("continue", "0"))
        end = begin + 2
        metadata = {"resourceVersion": "1", **({"continue": str(end)} if end < len(items) else {})}
        content = {"metadata": metadata, "items": items[begin:end], "gitVersion": "v1.37.2", **self.fields}
        return web.Response(
            body=orjson.dumps(content),
            status=self.status,
            content_type="application/json",
        )


def read(api: Api, folder: Path, *sources: Source, within_seconds: float = 30.0, **names: Any) -> Cluster:
    async def run() -> Cluster:
        async with (
            http_server(api.answer) as url,
            ClientConfig(write_kubeconfig(folder, url)).connect() as server,
        ):
            wanted = Wanted("c", sources=frozenset(sources), within_seconds=within_seconds, **names)
            return await read_cluster(server, wanted)

    return asyncio.run(run())


def test_all_pages_are_read_and_little_of_them_is_kept(tmp_path: Path) -> None:
    nodes = [{"metadata": {"name": f"n{n}", "annotations": {"a": "b"}}, "status": {"images": []}} for n in range(5)]
    api = Api({NODES: nodes})
    found = read(api, tmp_path, Source.NODES)

    assert [each["metadata"]["name"] for each in found.of(Source.NODES)] == [f"n{n}" for n in range(5)]
    assert api.asked[NODES] == 3
    assert "annotations" not in found.of(Source.NODES)[0]["metadata"]
    assert "images" not in found.of(Source.NODES)[0]["status"]


def test_what_is_kept_is_enough_for_the_checks() -> None:
    whole = make_installation()
    objects = {source: tuple(kept(source, each) for each in content) for source, content in whole.objects.items()}
    found = replace(whole, objects=objects)

    assert faults(found) == []
    assert (found.deployment or {}).keys() == {"kind", "metadata", "spec", "status"}


def test_a_cordoned_node_is_kept_as_one() -> None:
    """The checks ask the scorer whether the pods of a workload type fit."""
    cordoned = make_node_object("n", capacity={"cpu": "1"}) | {"spec": {"unschedulable": True}}

    assert Node.of(kept(Source.NODES, cordoned)).unschedulable is True


@pytest.mark.parametrize("source", Source)
@pytest.mark.parametrize("content", [{}, {"metadata": None, "spec": [], "status": 1}, {"spec": {"template": [1]}}])
def test_of_malformed_objects_little_is_kept(source: Source, content: dict[str, Any]) -> None:
    assert kept(source, content).keys() <= content.keys()


def test_only_what_a_check_needs_is_read(tmp_path: Path) -> None:
    api = Api({})
    read(api, tmp_path, Source.NODES)
    configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"

    assert dict(api.asked) == {NODES: 1, configurations: 1}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_exported_policies_are_read_in_the_version_that_is_served(tmp_path: Path, version: str) -> None:
    group = "/apis/admissionregistration.k8s.io"
    served = {f"{group}/{version}/{plural}": [{"metadata": {"name": "a"}}] for plural in PLURALS.values()}
    found = read(ApiWithVersions(served), tmp_path, Source.EXPORTED)

    assert [(each["kind"], each["apiVersion"].rpartition("/")[2]) for each in found.of(Source.EXPORTED)] == [
        (kind, version) for kind in PLURALS
    ]
    assert found.unserved_kinds == frozenset()
    assert read(ApiWithVersions({}), tmp_path, Source.EXPORTED).unserved_kinds == frozenset(PLURALS)


def test_all_checks_read_each_list_once(tmp_path: Path) -> None:
    api = Api({})
    read(api, tmp_path, *(source for check in CHECKS for source in check.needs))

    assert set(api.asked.values()) == {1}
    assert {NODES, PODS} <= api.asked.keys()


class ApiWithVersions(Api):
    """An API server that serves the admission policies in no other versions than those of its objects."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "admissionpolic" in request.path and request.path not in self.objects:
            return web.json_response({"message": "there is none"}, status=404)
        return await super().answer(request)


class ApiWithReplica(Api):
    """An API server that forwards a request to the admin port of a replica."""

    def __init__(self, described: Any) -> None:
        endpoints = [{"addresses": ["10.1.0.1"], "targetRef": {"name": "webhook-1"}}]
        slices = [{"ports": [{"name": "https", "port": 8443}], "endpoints": endpoints}]
        own = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
        super().__init__({"/apis/apps/v1/deployments": [deployment()], own: slices})
        self.described = described

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == f"/api/v1/namespaces/{NAMESPACE}/pods/webhook-1:8080/proxy/policy":
            return web.json_response(self.described)
        return await super().answer(request)


def test_the_checks_judge_by_the_policy_that_a_replica_has_in_force(tmp_path: Path) -> None:
    """The ConfigMap can hold a policy that the replicas reject."""
    in_force = policy_with(keyDomain="example.com")
    found = read(ApiWithReplica(policies_of(in_force).describe()), tmp_path, Source.POLICY)
    assert [each.identity for each in found.policies] == [in_force.identity]
    assert found.in_force is not None
    (finding,) = (each for each in faults(found) if each.check == "policy")
    assert finding.what.endswith(f"; all checks judge by {in_force.identity} of a replica")


def test_the_default_schedulers_that_a_replica_prints_are_not_those_of_the_policy(tmp_path: Path) -> None:
    policy = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}})
    found = read(ApiWithReplica(policies_of(policy).describe()), tmp_path, Source.POLICY)
    assert found.in_force is not None
    assert found.policy.spec.named_schedulers() == {}


@pytest.mark.parametrize("described", [{}, {"policy": {"spec": {"of": "another version"}}}])
def test_a_replica_that_gives_no_policy_is_no_fault(tmp_path: Path, described: Any) -> None:
    found = read(ApiWithReplica(described), tmp_path, Source.POLICY)
    assert (found.in_force, found.policy.identity) == (None, built_in_policy().identity)
    assert Source.POLICY not in found.refusals


def test_what_is_read_side_by_side_is_all_kept(tmp_path: Path) -> None:
    """Whichever answer comes last: here those on rights."""
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    config_map = f"/api/v1/namespaces/{NAMESPACE}/configmaps/placement-policy"
    api = Api({"/apis/apps/v1/deployments": [deployment()]}, after={reviews: config_map})
    found = read(api, tmp_path, Source.RIGHTS, Source.POLICY)

    assert {each.account for each in found.rights} == {f"{NAMESPACE}/placement-webhook"}
    assert found.stored is not None


def api_with_object(name: str, *args: str) -> Api:
    """Return the API of a cluster whose servers follow PlacementPolicy objects, and have accepted one."""
    server = with_args(deployment(), "--policy-source=crd", *args)
    content = {"metadata": {"name": name, "generation": 1}, "spec": {"mode": "shadow"}}
    content["status"] = status_of(content, GoodGeneration("0123456789ab", {}, 1), (), "2026-01-01T00:00:00Z", "")
    return Api({"/apis/apps/v1/deployments": [server], f"/apis/{API_VERSION}/placementpolicies": [content]})


def test_rights_are_asked_for_the_exported_objects_of_each_policy(tmp_path: Path) -> None:
    found = read(api_with_object("of-team-a", "--export-policy=on"), tmp_path, Source.RIGHTS)
    names = {each.name for each in found.rights if each.resource == "mutatingadmissionpolicies" and each.name}

    assert names == {"placement-webhook.default", "placement-webhook.of-team-a"}


@pytest.mark.parametrize("name", ["default", "of-team-a"])
def test_accepted_objects_are_in_force_where_servers_follow_them(tmp_path: Path, name: str) -> None:
    found = read(api_with_object(name), tmp_path, Source.POLICY)

    assert [each.name for each in found.accepted] == [name]
    assert (found.policy in found.accepted) is (name == "default")
    assert found.accepted[0] in found.policies
    assert [each["metadata"]["name"] for each in found.policy_objects or ()] == [name]


def test_pods_are_not_kept(tmp_path: Path) -> None:
    pods = [
        {
            "metadata": {"name": f"p{n}", "namespace": "default"},
            "spec": {"nodeName": "n", "schedulerName": f"s{n % 2}", "containers": []},
        }
        for n in range(5)
    ]
    found = read(Api({PODS: pods}), tmp_path, Source.PODS)

    assert found.of(Source.PODS) == ()
    assert found.bound_schedulers.keys() == {"s0", "s1"}


@pytest.mark.slow
def test_what_is_not_answered_in_time_is_refused(tmp_path: Path) -> None:
    api = Api({}, silent=frozenset({NODES}))
    found = read(api, tmp_path, Source.NODES, Source.QUOTAS, within_seconds=0.3)

    assert found.refusals == {Source.NODES: "not read within 0.3 s"}
    assert found.knows(Source.QUOTAS)


@pytest.mark.slow
def test_queues_are_unknown_without_the_api_groups(tmp_path: Path) -> None:
    """Without them, no queue is read, and the policy's would all be missing."""
    found = read(Api({}, silent=frozenset({"/apis"})), tmp_path, Source.QUEUES, within_seconds=0.3)

    assert found.refusals.keys() == {Source.GROUPS}
    assert not found.knows(Source.QUEUES)


class ApiWithCodes(Api):
    """An API server that answers these paths with an error of this code, or not at all if it is 0."""

    def __init__(self, codes: Mapping[str, int], *groups: str) -> None:
        silent = frozenset(path for path, code in codes.items() if not code)
        lists = {path: [{"metadata": {"name": path}}] for path in SERVED}
        super().__init__(lists, silent, fields={"groups": [{"name": each} for each in groups]})
        self.codes = codes

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if code := self.codes.get(request.path):
            return web.json_response({"message": "an error"}, status=code)
        return await super().answer(request)


SERVED = ("/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.sh/v1/nodeclaims")
BOTH = ["NodePool", "NodeClaim"]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param({}, BOTH, id="both"),
        pytest.param({SERVED[0]: 404}, BOTH[1:], id="the first is not served"),
        pytest.param({SERVED[1]: 404}, BOTH[:1], id="the second is not served"),
        pytest.param(dict.fromkeys(SERVED, 404), [], id="none is served"),
        pytest.param({SERVED[0]: 403}, None, id="the first is forbidden"),
        pytest.param({SERVED[1]: 403}, None, id="the second is forbidden"),
        pytest.param({SERVED[0]: 404, SERVED[1]: 403}, None, id="one is not served and one forbidden"),
        pytest.param({SERVED[1]: 0}, None, id="the second has no answer", marks=pytest.mark.slow),
    ],
)
def test_a_source_of_several_kinds_is_known_if_all_that_are_served_were_read(
    tmp_path: Path, codes: Mapping[str, int], expected: list[str] | None
) -> None:
    """A part would count as all of it, so that what is in the rest would be missing."""
    within = 0.3 if 0 in codes.values() else 30.0
    found = read(ApiWithCodes(codes, "karpenter.sh"), tmp_path, Source.NODE_POOLS, within_seconds=within)

    kinds = [each["kind"] for each in found.of(Source.NODE_POOLS)]
    assert (kinds if found.knows(Source.NODE_POOLS) else None) == expected
    assert (Source.NODE_POOLS in found.refusals) is (expected is None)


def test_queues_that_may_not_be_listed_are_not_missing(tmp_path: Path) -> None:
    path = "/apis/scheduling.volcano.sh/v1beta1/queues"
    policy = policy_with(namespaceLimits=[{"namespaces": ["*"], "queues": ["research"]}])

    def missing(codes: Mapping[str, int]) -> list[str]:
        api = ApiWithCodes(codes, "scheduling.volcano.sh")
        found = read(api, tmp_path, Source.QUEUES, policy=policy)
        return [each.what for each in faults(found) if each.check == "queues"]

    assert missing({}) == ["research: no Queue or LocalQueue has this name"]
    assert missing({path: 403}) == []


@pytest.mark.slow
def test_a_slow_list_holds_up_only_what_is_found_by_it(tmp_path: Path) -> None:
    api = Api({"/apis/apps/v1/deployments": [deployment()]}, silent=frozenset({NODES}))
    found = read(api, tmp_path, Source.NODES, Source.POLICY, within_seconds=1.0)

    assert found.refusals.keys() == {Source.NODES}
    assert found.stored is not None


def test_an_unknown_user_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ApiServerError) as failed:
        read(Api({}, status=401), tmp_path, Source.NODES)
    assert failed.value.code == 401


def test_every_source_is_needed_by_a_check() -> None:
    assert {source for check in CHECKS for source in check.needs} == set(Source)


@pytest.mark.parametrize(
    ("names", "namespace", "service"),
    [
        ({}, "own", "placed"),
        ({"namespace": "given"}, "given", "placed"),
        ({"service": "given"}, "own", "given"),
        ({"namespace": "given", "service": "other"}, "given", "other"),
    ],
)
def test_the_installation_is_the_one_that_is_called_unless_options_name_another(
    tmp_path: Path, names: dict[str, Any], namespace: str, service: str
) -> None:
    webhooks = [{"clientConfig": {"service": {"namespace": "own", "name": "placed"}}}]
    api = Api({CONFIGURATIONS: [{"metadata": {"name": "c"}, "webhooks": webhooks}]})

    found = read(api, tmp_path, Source.SERVICE, **names)

    assert (found.target.namespace, found.target.service) == (namespace, service)
    assert api.asked[f"/api/v1/namespaces/{namespace}/services/{service}"] == 1


@pytest.mark.parametrize("odd", range(4))
def test_the_service_is_the_one_that_most_webhooks_call(tmp_path: Path, odd: int) -> None:
    """So that the one webhook that calls another Service is the fault."""
    webhooks = configuration()["webhooks"]
    for number, webhook in enumerate(webhooks):
        name = "gone" if number == odd else "placed"
        webhook["clientConfig"]["service"] = {"namespace": "own", "name": name, "port": 443, "path": "/mutate"}
    api = Api({CONFIGURATIONS: [{"metadata": {"name": "c"}, "webhooks": webhooks}]})

    found = read(api, tmp_path, Source.SERVICE)

    assert (found.target.namespace, found.target.service) == ("own", "placed")
    called = [each.what for each in faults(found) if each.check == "service" and "calls" in each.what]
    assert called == ["calls own/gone, not own/placed"]


def test_the_names_are_the_default_ones_without_a_configuration(tmp_path: Path) -> None:
    assert read(Api({}), tmp_path, Source.SERVICE).target == Target(configuration="c")


def test_a_list_that_starts_again_has_each_object_once(tmp_path: Path) -> None:
    nodes = [{"metadata": {"name": f"n{n}"}} for n in range(5)]
    api = Api({NODES: nodes}, expiring=frozenset({NODES}))

    found = read(api, tmp_path, Source.NODES)

    assert [each["metadata"]["name"] for each in found.of(Source.NODES)] == [f"n{n}" for n in range(5)]
    assert api.asked[NODES] == 5


@pytest.mark.parametrize(
    ("fields", "is_held"), [({"status": {"allowed": True}}, True), ({"status": {"allowed": False}}, False), ({}, False)]
)
def test_a_right_is_held_if_the_api_server_says_so(tmp_path: Path, fields: Any, is_held: bool) -> None:
    api = Api({"/apis/apps/v1/deployments": [deployment()]}, fields=fields)

    found = read(api, tmp_path, Source.RIGHTS)

    assert {each.is_held for each in found.rights} == {is_held}


def test_the_servers_have_the_kind_of_their_list(tmp_path: Path) -> None:
    """The items of a list have no kind of their own."""
    servers = {key: value for key, value in deployment().items() if key != "kind"}

    found = [
        read(Api({f"/apis/apps/v1/{kind.lower()}s": [servers]}), tmp_path, Source.DEPLOYMENTS)
        for kind in ("StatefulSet", "Deployment")
    ]

    assert [each.deployment_kind for each in found] == ["StatefulSet", "Deployment"]
    assert [each.deployment is None for each in found] == [False, False]


@pytest.mark.parametrize(("namespace", "is_sign"), [("kube-system", True), ("kube-node-lease", False)])
def test_the_lease_of_a_node_is_no_sign_of_a_scheduler(tmp_path: Path, namespace: str, is_sign: bool) -> None:
    spec = {"holderIdentity": "volcano_1", "leaseDurationSeconds": 15, "renewTime": "2999-01-01T00:00:00.000000Z"}
    lease = {"metadata": {"name": "volcano", "namespace": namespace}, "spec": spec}

    found = read(Api({"/apis/coordination.k8s.io/v1/leases": [lease]}), tmp_path, Source.LEASES, Source.GROUPS)

    assert found.evidence is not None
    assert ("volcano" in found.evidence.leases) is is_sign


def test_gangs_without_a_budget_are_kept_of_the_pods(tmp_path: Path) -> None:
    pod = make_pod("w-0").namespace("team-a").annotate("maip.mxsf.io/workload-type", "training")
    gang = pod.annotate("maip.mxsf.io/gang", "g").node_name("n").scheduler("default-scheduler")

    found = read(Api({PODS: [gang.obj()]}), tmp_path, Source.PODS)

    assert found.unprotected == {("team-a", "training"): Unprotected("w-0", 1)}


@pytest.mark.parametrize("group", ["scheduling.volcano.sh", "scheduling.run.ai"])
def test_the_configuration_of_volcano_is_read_where_it_has_pod_groups(tmp_path: Path, group: str) -> None:
    path = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
    lists: dict[str, list[Any]] = {f"/apis/{group}/{version}/podgroups": [{}] for version in ("v1beta1", "v2alpha2")}
    api = Api(lists, fields={"groups": [{"name": group}]})

    found = read(api, tmp_path, Source.TOPOLOGY_REQUESTS)

    kinds = [each["kind"] for each in found.of(Source.TOPOLOGY_REQUESTS)]
    is_volcano = group == "scheduling.volcano.sh"
    assert kinds == ["PodGroup", *["ConfigMap"] * is_volcano]
    assert api.asked[path] == is_volcano


def test_the_pods_of_a_list_that_starts_again_count_once(tmp_path: Path) -> None:
    pod = make_pod("p").namespace("team-a").annotate("maip.mxsf.io/workload-type", "training").gpu(1)
    names = ("p-0", "p-1", "p-2", "p-3", "p-4")
    pods = [{**pod.obj(), "metadata": {**pod.obj()["metadata"], "name": name}} for name in names]
    webhooks = {**configuration(), "metadata": {"name": "c"}}
    objects = {PODS: pods, NAMESPACES: [{"metadata": {"name": "team-a"}}], CONFIGURATIONS: [webhooks]}

    whole, restarted = (Api(objects, expiring=frozenset(paths)) for paths in ((), (PODS,)))

    assert [read(each, tmp_path, Source.PODS).missed_count for each in (whole, restarted)] == [5, 5]
    assert (whole.asked[PODS], restarted.asked[PODS]) == (3, 5)

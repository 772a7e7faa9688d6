"""The real etcd, kube-apiserver and kube-scheduler on loopback, for tests.

Ask for the fixture `cluster` (conftest.py); the marker `control_plane` comes by itself. One control plane
serves the whole run; each test has a namespace of its own, and nodes, pods, workloads and webhook configurations
are removed after it, whichever client created them.

    def test_a_training_pod_is_bound_to_a_training_node(cluster: Cluster) -> None:
        cluster.make_node("t1", labels={...}, taints=["maip.mxsf.io/node.usage=training:NoSchedule"],
                          capacity={"nvidia.com/gpu": 8})
        pod = cluster.create(make_pod("trainer").gpu(8)).object
        assert cluster.wait_bound(pod) == "t1"

Builders (tests/support/objects/builders.py, pure)
    make_pod(name="pod") -> PodBuilder        .namespace .generate_name .annotate(key, value) .label(key, value)
        .owner(kind, name) .uid(uid) .requests(cpu=, memory=) .limits() .gpu(n, resource="nvidia.com/gpu")
        .container(name, **amounts) .init_container(name, **amounts) .sidecar(name, **amounts) .host_port(port)
        .pod_resources(**amounts) .overhead(**amounts)
        .toleration(key, operator=, value=, effect=) .node_selector(key, value) .affinity(dict) .require_node(*terms)
        .prefer_node(weight, term) .scheduler(name) .node_name(name) .spec(**fields) .status(**fields)
        .obj() -> dict   .template() -> dict (of a Deployment or Job)
    match_expressions((key, operator, values), ...) -> nodeSelectorTerm
    make_node_object(name, labels=, annotations=, taints=["key=value:Effect"], capacity=, allocatable=,
                     unschedulable=False) -> dict

Cluster (tests/controlplane/cluster.py), the fixture `cluster`
    .namespace: str       .client: Client       .control_plane: ControlPlane
    .make_node(name, **as make_node_object) -> dict            created, and known to the scheduler
    .make_nodes(*nodes: dict) -> list[dict]                     the same, many at once
    .create(obj: dict | PodBuilder, dry_run=False) -> Answer   into .namespace where it names none; a pod with a
                                                               nodeName is known to the scheduler when this returns
    .delete_pod(pod)                                           gone, and forgotten by the scheduler
    .make_namespace(name=None, labels=, annotations=) -> str   another one, removed with the test
    .pods(selector="", namespace=None) -> list[dict]
    .wait_bound(pod) -> node name     .wait_unschedulable(pod) -> message of the PodScheduled condition
    .wait_pods(count, selector="", namespace=None) -> list[dict]
    .scores(pod) -> {node: {plugin: weighted score}}           of its latest attempt; {} where one node was feasible
    .register_webhook(url, ca_bundle_pem, configuration="placement-webhook", **overrides) -> dict
                                                               MutatingWebhookConfiguration, in force when this
                                                               returns; failurePolicy Fail unless overridden
    .settle_webhooks()                                         wait until configurations made otherwise are in force
    .audit_event(answer: Answer) -> dict                       the API server's own audit event of that request
    .kubectl(*args, stdin=None, check=True) -> CompletedProcess[str]      -n .namespace unless args name one

Client (tests/controlplane/client.py), raw dicts; ApiError with .code .reason .message .status; NotFound
    .create(obj, namespace=None, dry_run=False) -> Answer
    .apply(obj, ..., field_manager="tests") -> Answer          on the server's side
    .replace(obj, ...) -> Answer   .patch(kind, name, body, namespace=, api_version=, subresource=, dry_run=) -> Answer
    .get(kind, name, namespace=None, api_version="v1") -> dict
    .list(kind, namespace=None, api_version="v1", label_selector="", field_selector="") -> list[dict]
    .delete(kind, name, ...)   .delete_collection(kind, ..., label_selector="")
    .request(method, path, query=, body=, content_type=) -> Answer
    .impersonating(user, groups=()) -> Client
    Answer: .object: dict, .warnings: list[str], .audit_id: str

ControlPlane (tests/controlplane/control_plane.py), the fixture `control_plane`
    .kubeconfig: Path   .url: str   .ca_pem: str   .audit_log: Path   .scheduler_log   .folder: Path (all logs)
    .start_scheduler(configuration: dict | None = None)   .stop_scheduler()        None: the profiles default-scheduler,
        volcano (default plugins under that name), binpack (NodeResourcesFit MostAllocated)
    .stop_api_server()   .restart_api_server()         what is stored stays; a test that stops it must start it again
    .start_controller_manager()     Deployments, ReplicaSets and Jobs; until the end of the test
    .kubectl(*args, stdin=None, check=True) -> CompletedProcess[str]
        A test need not restore it: `cluster` does.

The programs come from KUBEBUILDER_ASSETS or are built once: tests/controlplane/binaries.py.
"""

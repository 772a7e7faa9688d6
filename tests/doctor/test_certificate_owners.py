"""The owner of certificate and caBundle, the remedies that fit it, and the certs controller."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from certs.cluster.probe import Called
from certs.pki import SERVER_VALIDITY, issue_ca
from certs.registration import FIELD_MANAGER, with_ca_bundle
from certs.secret import OWNER
from placement_doctor.check import Finding, Severity
from placement_doctor.cluster import Cluster
from placement_doctor.commands import release_of
from placement_doctor.source import Source
from placement_doctor.workloads import Owner, owner_of
from tests.doctor.healthy import (
    called,
    configuration,
    controller,
    deployment,
    faults,
    found,
    make_installation,
    objects,
    probes,
    read_of,
    self_managed,
)
from tests.support.admission import policy_with
from tests.support.objects.manifests import Object
from tests.support.tls.certificates import EXPIRED, NOW, OTHER, make_artifacts

ERROR, WARNING = Severity.ERROR, Severity.WARNING
ROTATE = "placement-webhook certs rotate"
DESCRIBE = "`kubectl -n placement-webhook describe certificate placement-webhook-tls`"
CAINJECTOR = "`kubectl -n cert-manager logs deployment/cert-manager-cainjector`"
LOGS = "`kubectl -n placement-webhook-certs logs deployment/placement-webhook-certs`"
DUE = make_artifacts(server_age=SERVER_VALIDITY - timedelta(days=9, hours=1)).certificate


def written_by(*managers: str, annotations: dict[str, str] | None = None) -> Object:
    """Return the configuration whose caBundle these managers wrote, one after the other."""
    fields: Object = {"f:webhooks": {'k:{"name":"a"}': {"f:clientConfig": {"f:caBundle": {}}}}}
    content = configuration()
    content["metadata"]["managedFields"] = [
        {"manager": name, "time": f"2026-01-0{day}T00:00:00Z", "fieldsV1": fields}
        for day, name in enumerate(managers, start=1)
    ]
    content["metadata"]["managedFields"].append({"manager": "kubectl", "time": "2026-02-01T00:00:00Z", "fieldsV1": {}})
    content["metadata"]["annotations"] = annotations or {}
    return content


def by_cert_manager(**fields: Any) -> Cluster:
    annotations = {"cert-manager.io/inject-ca-from": "placement-webhook/placement-webhook-tls"}
    content = written_by("cainjector", annotations=annotations)
    return make_installation(objects={**objects(), Source.CONFIGURATIONS: (content,)}, **fields)


def by_register(**fields: Any) -> Cluster:
    return make_installation(objects={**objects(), Source.CONFIGURATIONS: (written_by(FIELD_MANAGER),)}, **fields)


@pytest.mark.parametrize(
    ("managers", "owner"),
    [
        ((FIELD_MANAGER,), Owner.PERSON),
        ((OWNER,), Owner.CONTROLLER),
        ((FIELD_MANAGER, OWNER), Owner.CONTROLLER),
        ((f"{OWNER}-placement-webhook-certs-0a1b",), Owner.CONTROLLER),
        ((OWNER, FIELD_MANAGER), Owner.PERSON),
        ((), Owner.PERSON),
    ],
)
def test_who_wrote_the_ca_bundle_last_owns_it(managers: tuple[str, ...], owner: Owner) -> None:
    assert owner_of(read_of(Source.CONFIGURATIONS, written_by(*managers))) is owner


def test_a_controller_owns_what_it_has_not_written_yet() -> None:
    assert owner_of(self_managed()) is Owner.CONTROLLER


def test_rules_that_are_missing_are_a_patch_for_the_overlay_of_cert_manager() -> None:
    kinds = [{"group": "example.com", "kind": "Farm", "resource": "farms", "templates": [{"path": "spec.template"}]}]
    policy = policy_with(workloadKinds=kinds)

    remedies = {
        made: {each.remedy for each in found(made(policy=policy, trial=None), "match-conditions")}
        for made in (by_cert_manager, by_register)
    }

    command = "`placement-webhook certs manifest --policy=FILE`"
    assert remedies[by_cert_manager] == {
        f"{command} prints the configuration, as a patch for your overlay of deploy/overlays/cert-manager"
    }
    assert remedies[by_register] == {"`placement-webhook certs register --policy=FILE` writes them"}


def test_the_secret_is_the_one_that_the_servers_mount() -> None:
    servers = deployment()
    for volume in servers["spec"]["template"]["spec"]["volumes"]:
        if "secret" in volume:
            volume["secret"]["secretName"] = "mounted"
    read = {**by_register().objects, Source.DEPLOYMENTS: (servers,)}

    (finding,) = found(replace(by_register(probes=probes(called(pem=DUE))), objects=read), "certificate")

    assert finding.remedy == "`placement-webhook certs register --secret=mounted` renews it"


@pytest.mark.parametrize("made", [self_managed, by_cert_manager, by_register])
def test_each_owner_can_be_healthy(made: Callable[[], Cluster]) -> None:
    assert faults(made()) == []


def renamed(content: Cluster) -> Cluster:
    """Return the installation with another configuration and Secret."""
    (own,) = content.of(Source.CONFIGURATIONS)
    own["metadata"]["name"] = "0-mine"
    other = controller()
    other["spec"]["template"]["spec"]["containers"][0]["args"].append("--secret=tls")
    read = {**content.objects, Source.DEPLOYMENTS: (deployment(), other)}
    return replace(content, target=replace(content.target, configuration="0-mine"), objects=read)


@pytest.mark.parametrize(
    ("made", "remedy"),
    [
        (self_managed, f"`{ROTATE}` renews it; else {LOGS} has the reason"),
        (
            lambda **fields: renamed(self_managed(**fields)),
            f"`{ROTATE} --configuration=0-mine --secret=tls` renews it; else {LOGS} has the reason",
        ),
        (
            by_cert_manager,
            f"cert-manager renews it: {DESCRIBE} says why not",
        ),
        (by_register, "`placement-webhook certs register` renews it"),
    ],
    ids=["controller", "other-names", "cert-manager", "register"],
)
@pytest.mark.parametrize("pem", [EXPIRED.certificate, DUE], ids=["expired", "due"])
def test_who_owns_a_certificate_renews_it(made: Callable[..., Cluster], remedy: str, pem: bytes) -> None:
    (finding,) = found(made(probes=probes(called(pem=pem))), "certificate")
    assert finding.remedy == remedy


@pytest.mark.parametrize(
    ("made", "remedy"),
    [
        (self_managed, f"the certs controller corrects it within seconds: {LOGS} says why not"),
        (
            by_cert_manager,
            f"cert-manager injects the CA: {DESCRIBE} and {CAINJECTOR} say why not",
        ),
        (by_register, "`placement-webhook certs register` puts the CA there"),
    ],
)
def test_who_owns_a_ca_bundle_corrects_it(made: Callable[..., Cluster], remedy: str) -> None:
    untrusted = made(probes=probes(called(pem=OTHER.certificate, trusted=False, detail="unknown authority")))
    emptied = made()
    for webhook in emptied.webhooks:
        webhook["clientConfig"]["caBundle"] = ""

    assert {each.remedy for each in found(untrusted, "certificate")} == {remedy}
    assert {each.remedy for each in found(emptied, "ca-bundle")} == {remedy}


def test_an_expired_ca_is_rotated() -> None:
    later = self_managed(now=NOW + timedelta(days=365 * 30))
    remedies = {each.remedy for each in found(later, "ca-bundle")}
    assert remedies == {f"`{ROTATE} --ca` renews it; else {LOGS} has the reason"}


def test_a_server_behind_a_url_is_registered_with_its_own_files() -> None:
    at_url = configuration()
    for webhook in at_url["webhooks"]:
        webhook["clientConfig"] = {"url": "https://webhook.example.com/mutate", "caBundle": "Cg=="}
    remedies = {each.remedy for each in found(read_of(Source.CONFIGURATIONS, at_url), "ca-bundle")}
    command = "`placement-webhook certs register --dir=DIR --url=https://webhook.example.com/mutate`"
    assert remedies == {f"{command} puts the CA there"}


def test_a_release_with_own_files_is_upgraded() -> None:
    content = written_by("helm", annotations={"meta.helm.sh/release-name": "placement"})
    for webhook in content["webhooks"]:
        webhook["clientConfig"]["caBundle"] = ""
    command = "helm upgrade placement deploy/chart -n placement-webhook --reset-then-reuse-values"
    (remedy,) = {each.remedy for each in found(read_of(Source.CONFIGURATIONS, content), "ca-bundle")}
    assert remedy == f"`{command} --set-file=certificates.caBundle=FILE` puts the CA there"


def entry(manager: str, time: str | None, path: str = "f:caBundle") -> Object:
    found = {"manager": manager, "fieldsV1": {"f:webhooks": {'k:{"name":"a"}': {"f:clientConfig": {path: {}}}}}}
    return found if time is None else {**found, "time": time}


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], Owner.PERSON, id="none"),
        pytest.param([entry(OWNER, EARLY), entry("kubectl", LATE)], Owner.PERSON, id="a person last"),
        pytest.param([entry("kubectl", EARLY), entry(OWNER, LATE)], Owner.CONTROLLER, id="the controller last"),
        pytest.param([entry(OWNER, LATE), entry("kubectl", None)], Owner.CONTROLLER, id="one without a time"),
        pytest.param([entry(OWNER, None)], Owner.CONTROLLER, id="only one, without a time"),
        pytest.param(
            [entry(OWNER, EARLY), entry("kubectl", LATE, "f:service")], Owner.CONTROLLER, id="another field last"
        ),
        pytest.param([entry(f"{OWNER}-abc", LATE), entry("kubectl", EARLY)], Owner.CONTROLLER, id="an instance of it"),
    ],
)
def test_the_owner_is_the_last_to_write_a_ca_bundle_in_any_order(entries: list[Object], expected: Owner) -> None:
    for ordered in (entries, entries[::-1]):
        content = configuration()
        content["metadata"]["managedFields"] = ordered

        assert owner_of(read_of(Source.CONFIGURATIONS, content)) is expected


@pytest.mark.parametrize("of_helm", [set(), {"configuration"}, {"servers"}, {"controller"}, {"controller", "servers"}])
def test_helm_has_installed_the_webhook_if_one_of_its_objects_is_of_a_release(of_helm: set[str]) -> None:
    """Also if another tool has written the others, such as the configuration that the certs controller creates."""
    made = {"configuration": configuration(), "servers": deployment(), "controller": controller()}
    for name in of_helm:
        made[name]["metadata"]["annotations"] = {"meta.helm.sh/release-name": f"release-of-{name}"}
    read = {Source.CONFIGURATIONS: (made["configuration"],), Source.DEPLOYMENTS: (made["servers"], made["controller"])}

    found_release = release_of(make_installation(objects={**objects(), **read}))

    # Of two releases, that of the servers counts.
    expected = next((each for each in ("configuration", "servers", "controller") if each in of_helm), None)
    assert found_release == (f"release-of-{expected}" if expected else None)


SHORT, LONG, OVER = (
    issue_ca(now=NOW - age, validity=validity).certificate
    for age, validity in (
        (timedelta(days=300), timedelta(days=309, hours=1)),
        (timedelta(0), timedelta(days=900)),
        (timedelta(days=9), timedelta(days=7)),
    )
)


@pytest.mark.parametrize(
    ("cas", "expected"),
    [
        ((LONG,), None),
        ((LONG, SHORT), None),
        ((LONG, OVER), None),
        ((SHORT,), (WARNING, "its last CA expires in 9 days")),
        ((SHORT, OVER), (WARNING, "its last CA expires in 9 days")),
        ((OVER,), (ERROR, f"its last CA expired on {NOW - timedelta(days=2):%Y-%m-%d}")),
    ],
)
def test_the_last_ca_of_a_bundle_to_expire_counts_in_any_order(
    cas: tuple[bytes, ...], expected: tuple[Severity, str] | None
) -> None:
    for ordered in (cas, cas[::-1]):
        content = with_ca_bundle(configuration(), b"".join(ordered))
        findings = found(read_of(Source.CONFIGURATIONS, content), "ca-bundle")

        assert {(each.severity, each.what) for each in findings} == ({expected} if expected else set())


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    ("pem", "of_age"),
    [
        (OTHER.certificate, None),
        (DUE, (WARNING, "expires in 9 days")),
        (EXPIRED.certificate, (ERROR, "expired ")),
    ],
)
def test_a_certificate_that_is_not_trusted_is_an_error_of_its_own_unless_it_has_expired(
    pem: bytes, of_age: tuple[Severity, str] | None, trusted: bool
) -> None:
    result = called(trusted=trusted, detail="unable to get local issuer certificate", pem=pem)
    findings = found(make_installation(probes=probes(result)), "certificate")

    expected = of_age
    if not trusted and (of_age is None or of_age[0] is WARNING):
        expected = (ERROR, "API servers do not trust: unable to get local issuer certificate (valid for localhost)")
    assert [each.severity for each in findings] == ([expected[0]] if expected else [])
    assert all(expected and expected[1] in each.what for each in findings)


def one(installation: Cluster) -> Finding:
    (finding,) = found(installation, "certs-controller")
    return finding


@pytest.mark.parametrize(
    ("served", "severity", "effect"),
    [
        (called(), WARNING, "nothing renews the served certificate, which expires in "),
        (called(pem=DUE), ERROR, "nothing renews the served certificate, which expires in 9 days"),
        (called(pem=EXPIRED.certificate), ERROR, "nothing renews the served certificate, which expired "),
        (called(pem=None), WARNING, "nothing renews the certificate; no endpoint can be reached"),
        ((called(), called(pem=DUE)), ERROR, "nothing renews the served certificate, which expires in 9 days"),
    ],
)
def test_a_missing_controller_is_as_severe_as_the_certificate_is_old(
    served: Any, severity: Severity, effect: str
) -> None:
    finding = one(read_of(Source.CONFIGURATIONS, written_by(OWNER)))
    assert finding.where == "Deployment placement-webhook-certs/placement-webhook-certs"
    read = {**objects(), Source.CONFIGURATIONS: (written_by(OWNER),)}
    results = (served * 2,) if isinstance(served, tuple) and isinstance(served[0], Called) else probes(served)
    finding = one(make_installation(objects=read, probes=results))
    assert finding.severity is severity
    assert finding.what.startswith("does not exist, though the certs controller wrote the caBundle: ")
    assert effect in finding.what
    assert finding.remedy.startswith("`kubectl apply -k deploy/overlays/self-managed`")


def test_a_controller_without_replicas_is_scaled() -> None:
    stopped = controller(readyReplicas=0)
    stopped["spec"]["replicas"] = 0
    finding = one(self_managed(stopped))
    assert finding.where.endswith("placement-webhook-certs: spec.replicas")
    assert (
        finding.remedy == "`kubectl -n placement-webhook-certs scale deployment placement-webhook-certs --replicas=1`"
    )


def pod(**status: Any) -> Object:
    return {"metadata": {"name": "placement-webhook-certs-1"}, "status": status}


def ended(minutes: int, restarts: int, *, ready: bool = True, **state: Any) -> Object:
    """Return a pod whose container ended so many minutes ago."""
    last = {"terminated": {"exitCode": 2, "finishedAt": ago(minutes)}}
    status = {"name": "certs", "restartCount": restarts, "ready": ready, "state": state, "lastState": last}
    return pod(containerStatuses=[status])


def ago(minutes: int) -> str:
    return f"{NOW - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


CRASHES = "its container ends again and again (7 restarts, the last with exit code 2)"
BACK_OFF = {"reason": "CrashLoopBackOff"}


@pytest.mark.parametrize(
    ("ready", "content", "what", "command"),
    [
        (0, pod(), "no replica is ready: ", LOGS),
        (0, ended(1, 7, waiting=BACK_OFF), CRASHES, f"{LOGS[:-1]} --previous`"),
        (1, ended(1, 7, running={}), CRASHES, f"{LOGS[:-1]} --previous`"),
        (1, ended(1, 3, running={}), CRASHES.replace("7", "3"), f"{LOGS[:-1]} --previous`"),
        (1, ended(12, 7, running={"startedAt": ago(9)}), CRASHES, f"{LOGS[:-1]} --previous`"),
        (0, ended(12, 7, ready=False, running={"startedAt": ago(11)}), CRASHES, f"{LOGS[:-1]} --previous`"),
        (
            0,
            pod(containerStatuses=[{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]),
            "no replica is ready (ImagePullBackOff): ",
            "`kubectl -n placement-webhook-certs describe pods --selector=app.kubernetes.io/name=placement-webhook,",
        ),
        (
            0,
            pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]),
            "no replica is ready (0/3 nodes are available): ",
            "`kubectl -n placement-webhook-certs describe pods --selector=",
        ),
    ],
)
def test_a_controller_that_does_not_run_is_found(ready: int, content: Object, what: str, command: str) -> None:
    installation = self_managed(controller(readyReplicas=ready))
    finding = one(replace(installation, objects={**installation.objects, Source.CONTROLLER_PODS: (content,)}))
    assert finding.what.startswith(what)
    assert finding.remedy.startswith(command)


@pytest.mark.parametrize(
    "content", [ended(90, 7, running={}), ended(1, 2, running={}), ended(12, 7, running={"startedAt": ago(11)})]
)
def test_a_controller_that_has_recovered_is_no_fault(content: Object) -> None:
    installation = self_managed()
    assert (
        found(
            replace(installation, objects={**installation.objects, Source.CONTROLLER_PODS: (content,)}),
            "certs-controller",
        )
        == []
    )


@pytest.mark.parametrize("when", ["", "soon", "2026-01-01T00:00:00", 7, None])
def test_a_malformed_time_of_a_restart_counts_as_none(when: Any) -> None:
    last = {"terminated": {"exitCode": 2, "finishedAt": when}}
    content = pod(containerStatuses=[{"restartCount": 9, "lastState": last}], conditions=[{"type": "PodScheduled"}])
    installation = self_managed()
    read = {**installation.objects, Source.CONTROLLER_PODS: (content,)}
    assert found(replace(installation, objects=read), "certs-controller") == []


def test_a_controller_beside_cert_manager_is_found() -> None:
    read = {**by_cert_manager().objects, Source.DEPLOYMENTS: (deployment(), controller())}
    finding = one(make_installation(objects=read))
    assert finding.remedy == "`kubectl -n placement-webhook-certs delete deployment placement-webhook-certs`"


def test_deployments_that_were_not_read_are_no_fault() -> None:
    read = {**objects(), Source.CONFIGURATIONS: (written_by(OWNER),)}
    del read[Source.DEPLOYMENTS]
    assert found(make_installation(objects=read), "certs-controller") == []

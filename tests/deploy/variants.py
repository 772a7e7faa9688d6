"""Values of the Helm chart that together use each of its choices."""

from tests.deploy.helm import Object

CA_PEM = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"

VARIANTS: dict[str, Object] = {
    "self-managed": {"certificates": {"secretName": "tls", "controller": {"extraArgs": ["--server-days=90"]}}},
    "cert-manager": {
        "policyObjects": True,
        "exportedPolicy": {"enabled": True},
        "certificates": {"source": "certManager"},
        "monitoring": {each: {"enabled": True} for each in ("serviceMonitor", "prometheusRule", "dashboard")},
        "clientCertificates": {"caSecretName": "api-servers", "names": ["kube-apiserver-*"]},
        "admin": {"port": 9090, "tokenSecretName": "prometheus"},
    },
    "own-secret": {
        "certificates": {"source": "secret", "caBundle": CA_PEM},
        "liveView": False,
        "webhook": {
            "exemptNamespaces": ["kube-system", "network"],
            "namespaceSelector": {"matchLabels": {"gpu": "yes"}},
            "timeoutSeconds": 3,
        },
        "image": {"repository": "registry.example.com/pw", "digest": f"sha256:{'0' * 64}", "pullSecrets": ["pull"]},
    },
    "audit-volume": {
        "console": {"enabled": True},
        "audit": {"output": "volume", "volume": {"storageClassName": "fast"}},
        "events": False,
        "extraArgs": ["--log-level=warning", "--audit-max-total-bytes=500000000"],
        "nodeSelector": {"role": "control"},
        "networkPolicy": {
            "ingressFrom": [{"ipBlock": {"cidr": "192.0.2.10/32"}}],
            "extraEgress": [{"ports": [{"port": 4318}]}],
        },
        "policy": {
            "apiVersion": "placement.maip.mxsf.io/v1alpha1",
            "kind": "PlacementPolicy",
            "metadata": {"name": "own"},
            "spec": {"tolerateAnyProduct": False},
        },
    },
}

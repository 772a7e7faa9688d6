#!/usr/bin/env bash
# Install the webhook in a new kind cluster with four GPU nodes that KWOK simulates, and create a training pod.
#
# Needs docker, kind and kubectl, and 4 GiB of memory. It changes no other cluster. Remove everything with
# `kind delete cluster --name placement-quickstart`.
set -euo pipefail
cd "$(dirname "$0")/../.."

CLUSTER=placement-quickstart
IMAGE=placement-webhook:quickstart
KWOK=https://github.com/kubernetes-sigs/kwok/releases/download/v0.7.0

kubectl() { command kubectl --context "kind-$CLUSTER" "$@"; }

for program in docker kind kubectl; do
  command -v "$program" >/dev/null || { echo "$program is not installed" >&2; exit 2; }
done

echo "== A cluster, and the image in it"
kind get clusters 2>/dev/null | grep -qx "$CLUSTER" || kind create cluster --name "$CLUSTER" --wait 120s
docker build -t "$IMAGE" .
kind load docker-image "$IMAGE" --name "$CLUSTER"

echo "== Nodes with GPUs"
kubectl apply -f "$KWOK/kwok.yaml"
kubectl wait --for=condition=Established crd/stages.kwok.x-k8s.io --timeout=60s
kubectl apply -f "$KWOK/stage-fast.yaml"
kubectl apply -f deploy/quickstart/nodes.yaml
kubectl wait --for=condition=Ready node --all --timeout=120s

echo "== The webhook"
kubectl apply -k deploy/quickstart
kubectl -n placement-webhook rollout status deployment/placement-webhook --timeout=180s
kubectl wait --for=create mutatingwebhookconfiguration/00-placement-webhook --timeout=120s

echo "== A training pod"
kubectl apply -f deploy/quickstart/pod.yaml
kubectl wait --for=condition=PodScheduled pod/trainer --timeout=60s
kubectl get pod trainer -o wide
kubectl get pod trainer -o jsonpath='{.spec.tolerations}{"\n"}{.metadata.annotations}{"\n"}'

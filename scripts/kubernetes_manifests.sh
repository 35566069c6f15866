#!/usr/bin/env bash
# Writes the plain manifests of packaging/kubernetes/manifests from the chart, for users without Helm.
#
#   scripts/kubernetes_manifests.sh           writes them
#   scripts/kubernetes_manifests.sh --check   compares them with the chart; exits with 1 if they differ
#
# Each folder belongs to one file of values (packaging/kubernetes/values). Objects with different lifetimes are in
# different files: `kubectl delete -f` of the server's file ends the server and keeps all jobs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly packaging=$root/packaging/kubernetes

fail() {
  echo "manifests: $1" >&2
  exit 1
}

# The server's pod and, by default, the pods of jobs meet the Pod Security level "restricted". A job that requests root or a
# folder of a node requires another level in the jobs' namespace.
namespace() {
  cat <<END
apiVersion: v1
kind: Namespace
metadata:
  name: $1
  labels:
    pod-security.kubernetes.io/enforce: restricted
END
}

# render VALUES [ARGUMENTS...]
render() {
  "$helm" template muster "$packaging/chart" --namespace muster --values "$1" \
    --set persistence.keep=false "${@:2}" | sed '/^# Source: /d; 1{/^---$/d}'
}

# manifests VALUES FOLDER
manifests() {
  local template others=()
  mkdir -p "$2"
  { namespace muster && echo --- && namespace muster-jobs; } >"$2/1-namespaces.yaml"
  render "$1" --show-only templates/persistentvolumeclaim.yaml >"$2/2-storage.yaml"
  for template in serviceaccount rbac configmap service networkpolicy poddisruptionbudget deployment; do
    others+=(--show-only "templates/$template.yaml")
  done
  render "$1" "${others[@]}" >"$2/3-server.yaml"
}

case ${1:-} in
  "") out=$packaging/manifests ;;
  --check)
    out=$(mktemp -d "${TMPDIR:-/tmp}/muster-manifests-XXXXXX")
    trap 'rm -rf "$out"' EXIT
    ;;
  *) fail "unknown argument: $1; usage: scripts/kubernetes_manifests.sh [--check]" ;;
esac
helm=$("$root/scripts/kubernetes_programs.sh" helm)/helm
for values in "$packaging"/values/*.yaml; do
  manifests "$values" "$out/$(basename "$values" .yaml)"
done
if [[ ${1:-} == --check ]]; then
  diff -ru "$packaging/manifests" "$out" >&2 ||
    fail "packaging/kubernetes/manifests differs from the chart; make kubernetes-manifests writes it"
fi

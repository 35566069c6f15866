#!/usr/bin/env bash
# Trains a network on handwritten digits with two MPI workers in pods on two nodes of Kubernetes, under Muster,
# and prints the result. `make quickstart-kubernetes` calls it after the build. Exits 0 only when the job
# succeeded.
#
# It starts a cluster for this purpose, with a real kubelet and containerd for each node, which requires root.
# Muster has a private server and state folder. At the end all of this is removed.
#
#   MUSTER_SUBMIT_FLAGS   more flags for muster submit, e.g. "--launch ssh"
#   MUSTER_STARTED_AT     the start of the caller (seconds since the epoch), for the total at the end
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/quickstart_parts.sh
source scripts/quickstart_parts.sh
readonly image=localhost/muster-test-debian:test node_image=build/muster-node.tar

need_programs
[[ -e $node_image ]] || fail "$node_image is missing; run: make image-node"
if [[ ${1:-} != --inside ]]; then
  echo "quickstart: starts a cluster of two nodes, and removes it at the end"
  exec python3 -B tests/kubernetes_cluster.py run --progress --images debian --archive "$node_image" -- \
    "$0" --inside
fi

work=$(mktemp -d)
export MUSTER_STATE_DIR=$work/state XDG_CONFIG_HOME=$work/config
finish() {
  "$muster" delete --ignore-missing --force "$job" >/dev/null || true
  "$muster" server --stop >/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
# On a signal the script exits, which runs finish().
trap 'exit 130' INT TERM

mkdir -p "$XDG_CONFIG_HOME/muster"
cat >"$XDG_CONFIG_HOME/muster/server.yaml" <<'END'
engine: kubernetes
kubernetes:
  node_image: localhost/muster-node:test
END

# A pod needs an image, and the files that are sent with the job.
readonly files=$work/job
output=$work/output
mkdir -p "$files"
cp "$digits" "$files"
cp -r examples/data/digits "$files/data"

echo "\$ kubectl get nodes"
kubectl get nodes
# A worker takes most of a node, so the two run on different nodes.
cpus=$(kubectl get node node-1 -o 'jsonpath={.status.allocatable.cpu}')
cpus=$(awk -v cpus="$cpus" 'BEGIN { printf "%g", cpus * 0.75 }')
status=0
train "$output" --cpus "$cpus" --image "$image" --workspace "$files" -- ./digits --data data || status=$?
[[ $status -eq 0 ]] || { "$muster" explain "$job" >&2 || true; fail "the job failed (exit code $status)" "$status"; }

nodes=$("$muster" get "$job" | awk '$1 ~ /^worker-/ { print $4 }' | paste -sd ' ')
[[ $nodes == *" "* && ${nodes% *} != "${nodes#* }" ]] || fail "the workers ran on $nodes, not on two nodes"
show_result "$output" "nodes          $nodes"

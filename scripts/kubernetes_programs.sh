#!/usr/bin/env bash
# Builds the programs of a Kubernetes cluster for tests, unless they exist, and prints their folder.
#
#   scripts/kubernetes_programs.sh                etcd, kube-apiserver, kube-controller-manager,
#                                                 kube-scheduler, kube-proxy, kubelet, kubectl, coredns,
#                                                 gpu-stand-ins
#   scripts/kubernetes_programs.sh containerd    containerd 2, its shim and ctr: Debian's containerd cannot mount images
#   scripts/kubernetes_programs.sh programs-1.29  kube-apiserver, kube-scheduler and kubelet of the oldest version that
#                                                 Muster supports
#   scripts/kubernetes_programs.sh mpi-operator   Kubeflow's MPI operator, for benchmarks
#   scripts/kubernetes_programs.sh kwok           simulated nodes, for tests of scale
#   scripts/kubernetes_programs.sh helm           Helm, for the chart of packaging/kubernetes
#   scripts/kubernetes_programs.sh kueue          Kueue: queues and quotas for jobs, to which Muster can leave admission
#   scripts/kubernetes_programs.sh --find [NAME]  only prints the folder; fails if it was not built
#
# Debian has no kubelet and no API server, so the programs are compiled from Go modules of pinned versions
# (tests/kubernetes/NAME/go.mod). The first build downloads about 100 MB, takes about 12 minutes of CPU time,
# and leaves 4 GB in Go's own build cache, which `go clean -cache` removes. The results are kept outside the
# tree, for all checkouts, under a key made from the Go sources:
#
#   MUSTER_KUBERNETES_CACHE   where (default: ${XDG_CACHE_HOME:-~/.cache}/muster/kubernetes)
#   MUSTER_KUBERNETES_JOBS    how many compilers run at a time (default: one a core)
#   MUSTER_GO                 the go command (default: go on PATH, then Debian's /usr/lib/go)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly cache=${MUSTER_KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster/kubernetes}

# Debian 12's Go is too old to compile these modules, but it can download a newer Go, which is a Go module, too.
readonly toolchain=v0.0.1-go1.26.3.linux-amd64
readonly toolchain_sum=h1:LdHRR8AtYKtOQrWMnd5AbvhZMSVJ7HoO2wrqShPaLV8=

# The version that is linked into the programs. Clients check the version of the server.
kubernetes=v1.37.2

say() { echo "kubernetes: $*" >&2; }

fail() {
  echo "kubernetes: $1" >&2
  shift
  for line in "$@"; do echo "  $line" >&2; done
  exit 1
}

# A hash of the sources, which is part of the folder's name.
key() {
  (cd "$source" && find . -type f \( -name '*.go' -o -name 'go.*' \) -print0 | LC_ALL=C sort -z |
    xargs -0 sha256sum | sha256sum | cut -c 1-16)
}

# Whether Go of version $1 compiles a module that asks for version $2.
is_enough() {
  [[ $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]
}

# Sets `go` to a go command that is new enough.
find_go() {
  local wanted version candidate
  wanted=$(sed -nE 's/^go ([0-9.]+)$/\1/p' "$source/go.mod")
  go=
  for candidate in "${MUSTER_GO:-}" go /usr/lib/go/bin/go; do
    [[ -n $candidate ]] && command -v "$candidate" >/dev/null && go=$(command -v "$candidate") && break
  done
  [[ -n $go ]] || fail "no go command: compiling Kubernetes requires Go $wanted" \
    "scripts/deps.sh --kubernetes installs Debian's Go, which fetches that version; or set MUSTER_GO"
  version=$(GOTOOLCHAIN=local "$go" env GOVERSION)
  is_enough "${version#go}" "$wanted" || fetch_go "$wanted"
}

# Go's own download of toolchains (GOTOOLCHAIN) requires Go 1.21. With Debian's Go 1.19, `go mod download` of the same module
# works, but leaves the programs without the permission to be executed.
fetch_go() {
  local place=$cache/${toolchain#v0.0.1-} answer folder
  if [[ ! -x $place/bin/go ]]; then
    [[ $(uname -m) == x86_64 ]] || fail "$go is too old: compiling Kubernetes requires Go $1" \
      "set MUSTER_GO to a newer go command"
    say "$("$go" version) is too old; downloads Go ${toolchain#v0.0.1-go} (about 70 MB)"
    answer=$(cd / && GOFLAGS='' "$go" mod download -json "golang.org/toolchain@$toolchain") ||
      fail "cannot download Go: $answer" "set MUSTER_GO to a go command of version $1 or newer"
    grep -qF "\"Sum\": \"$toolchain_sum\"" <<<"$answer" ||
      fail "the downloaded Go has another checksum than $toolchain_sum: $answer"
    folder=$(sed -nE 's/^\s*"Dir": "(.*)",?$/\1/p' <<<"$answer")
    rm -rf "$place.part"
    cp -r --no-preserve=mode "$folder" "$place.part"
    chmod +x "$place.part"/bin/* "$place.part"/pkg/tool/*/*
    mv "$place.part" "$place"
  fi
  go=$place/bin/go
}

# build OUTPUT PACKAGE [FLAGS]: links without debugging information, statically.
build() {
  local flags="-s -w${3:-}" package minor=${kubernetes#v1.}
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$kubernetes -X $package.gitMajor=1 -X $package.gitMinor=${minor%.*}"
    flags+=" -X $package.gitTreeState=clean"
  done
  (cd "$source" && GOFLAGS='' GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=0 \
    "$go" build ${MUSTER_KUBERNETES_JOBS:+-p "$MUSTER_KUBERNETES_JOBS"} -trimpath -buildvcs=false \
    -gcflags=all=-dwarf=false -ldflags "$flags" -o "$1" "$2") >&2
}

make_programs() {
  local name
  build "$1/kubernetes" .
  build "$1/coredns" ./coredns
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl gpu-stand-ins; do
    ln -s kubernetes "$1/$name"
  done
}

make_containerd() {
  local name
  for name in containerd containerd-shim-runc-v2 ctr; do
    build "$1/$name" "github.com/containerd/containerd/v2/cmd/$name" \
      " -X github.com/containerd/containerd/v2/version.Version=v2.2.1"
  done
}

make_programs-1.29() {
  kubernetes=v1.29.15
  build "$1/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
  build "$1/kube-scheduler" k8s.io/kubernetes/cmd/kube-scheduler
  build "$1/kubelet" k8s.io/kubernetes/cmd/kubelet
}

# The folder of the module $1, whose manifests must be applied to the API server for an operator.
module_folder() { (cd "$source" && GOFLAGS='' GOWORK=off GOTOOLCHAIN=local "$go" list -m -f '{{.Dir}}' "$1"); }

make_mpi-operator() {
  build "$1/mpi-operator" github.com/kubeflow/mpi-operator/cmd/mpi-operator
  cp --no-preserve=mode "$(module_folder github.com/kubeflow/mpi-operator)/deploy/v2beta1/mpi-operator.yaml" "$1"
}

make_kwok() {
  build "$1/kwok" sigs.k8s.io/kwok/cmd/kwok
  cp -r --no-preserve=mode "$(module_folder sigs.k8s.io/kwok)/kustomize" "$1"
}

make_kueue() {
  build "$1/kueue" sigs.k8s.io/kueue/cmd/kueue
  cp -r --no-preserve=mode "$(module_folder sigs.k8s.io/kueue)/config" "$1"
}

# Helm compares the chart's kubeVersion with the version that is linked in.
make_helm() {
  local package more=""
  for package in pkg/chartutil pkg/lint/rules; do
    more+=" -X helm.sh/helm/v3/$package.k8sVersionMajor=1 -X helm.sh/helm/v3/$package.k8sVersionMinor=37"
  done
  build "$1/helm" helm.sh/helm/v3/cmd/helm "$more"
}

find_only=no
if [[ ${1:-} == --find ]]; then
  find_only=yes
  shift
fi
readonly module=${1:-programs}
readonly source=$root/tests/kubernetes/$module
[[ $# -le 1 && $(type -t "make_$module") == function && -e $source/go.mod ]] ||
  fail "unknown argument: $*" \
    "usage: scripts/kubernetes_programs.sh [--find] [containerd | programs-1.29 | mpi-operator | kwok | kueue | helm]"

place=$cache/$module-$(key)
if [[ ! -d $place ]]; then
  [[ $find_only == no ]] || fail "the programs of a Kubernetes cluster have not been built: $place is missing" \
    "scripts/kubernetes_programs.sh${1:+ $1} builds them"
  mkdir -p "$cache"
  exec 9>"$cache/$module.lock"
  flock 9
fi
# Another build may have finished while this one waited.
if [[ ! -d $place ]]; then
  find_go
  say "compiles $module with $("$go" env GOVERSION); the first time takes many minutes"
  rm -rf "$cache/$module"-*.part
  mkdir "$place.part"
  "make_$module" "$place.part"
  mv "$place.part" "$place"
  say "done in $SECONDS s: $(du -sh "$place" | cut -f 1) in $place"
fi
echo "$place"

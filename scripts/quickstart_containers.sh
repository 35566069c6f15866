#!/usr/bin/env bash
# Trains a network on handwritten digits with two MPI workers in containers, under Muster, and says how
# it went. `make quickstart-containers` calls it after the build. Exits 0 only when the job succeeded.
#
# It takes the engine that is there: DOCKER_HOST, else a usual socket of Docker or Podman. Where there
# is none it starts Podman for itself, with storage, networks and processes of its own, which takes
# root. Muster has a server and a state folder of its own. At the end none of it is left, and what
# image it brought an engine it has taken away again.
#
#   MUSTER_SUBMIT_FLAGS   more flags for muster submit, e.g. "--launch agent"
#   MUSTER_STARTED_AT     when the caller began (seconds since the epoch), for the total at the end
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly muster=$PWD/build/release/platform/muster
readonly digits=$PWD/build/release/examples/digits/digits
readonly image=localhost/muster-test-openmpi
readonly job=dist

fail() {
  echo "quickstart: $1" >&2
  exit "${2:-1}"
}

# The last value that the job printed after `label: `.
reported() {
  sed -nE "s|.*$1: +([0-9.]+).*|\1|p" "$output" | tail -n 1
}

usual_socket() {
  local socket
  for socket in "${XDG_RUNTIME_DIR:-/run/user/$UID}/podman/podman.sock" \
    "${XDG_RUNTIME_DIR:-/run/user/$UID}/docker.sock" /run/podman/podman.sock /var/run/docker.sock; do
    [[ -S $socket ]] && return
  done
  return 1
}

for program in "$muster" "$digits"; do
  [[ -x $program ]] || fail "$program is missing; run: make programs"
done
if [[ -z ${DOCKER_HOST:-} ]] && ! usual_socket; then
  echo "quickstart: no engine is running here; this starts a Podman of its own, and ends it"
  exec python3 tests/with_engine.py "$0"
fi

work=$(mktemp -d)
export MUSTER_STATE_DIR=$work/state MUSTER_ENGINE=container
finish() {
  "$muster" delete --ignore-missing --force "$job" >/dev/null || true
  "$muster" server --stop >/dev/null || true
  [[ ! -e $work/loaded ]] || python3 tests/with_engine.py --unload "$image"
  rm -rf "$work"
}
trap finish EXIT
# A signal ends the script by way of the above.
trap 'exit 130' INT TERM

# What a task needs is its image and the files that the job brings along.
readonly files=$work/job output=$work/output
mkdir -p "$files"
cp "$digits" "$files"
cp -r examples/data/digits "$files/data"
python3 tests/with_engine.py --load "$image" "$work/loaded"

read -ra extra <<<"${MUSTER_SUBMIT_FLAGS:-}"
submit=(submit mpi "$job" --workers 2 --image "$image" --workspace "$files" --follow "${extra[@]}" --
  mpirun --allow-run-as-root -np 2 --hostfile /generated/hostfile -bind-to none -map-by slot
  -x NCCL_DEBUG=INFO -mca pml ob1 -mca btl ^openib ./digits --data data)

echo "\$ muster ${submit[*]}"
status=0
"$muster" "${submit[@]}" 2>&1 | tee "$output" || status=${PIPESTATUS[0]}
[[ $status -eq 0 ]] || { "$muster" get "$job" >&2 || true; fail "the job failed (exit code $status)" "$status"; }

accuracy=$(reported 'test accuracy')
speed=$(reported 'images/s')
[[ -n $accuracy ]] || fail "the job ended well, yet printed no test accuracy"
[[ -n $speed ]] || fail "the job ended well, yet printed no images/s"
row=$("$muster" list | awk -v job="$job" 'NR == 1 || $1 == job')
grep -qw Succeeded <<<"$row" || fail "the job is not listed as Succeeded: $(tail -n 1 <<<"$row")"

took=$(($(date +%s) - ${MUSTER_STARTED_AT:-$(($(date +%s) - SECONDS))}))
echo
echo "test accuracy  $accuracy %"
echo "images/s       $speed"
echo "took           $((took / 60)) min $((took % 60)) s"
"$muster" get "$job" | sed -nE 's/^LAUNCH +/ranks          /p'
echo
echo "$row"

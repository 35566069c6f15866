#!/usr/bin/env bash
# Trains a network on handwritten digits with two MPI workers in containers, under Muster, and prints the
# result. `make quickstart-containers` calls it after the build. Exits 0 only when the job succeeded.
#
# It uses the engine of DOCKER_HOST, else the engine at a usual socket of Docker or Podman. If there is no
# engine, it starts a private Podman with its own storage, networks and processes, which requires root. Muster
# has a private server and state folder. At the end all of this is removed, and so is an image that this
# script has loaded into an engine.
#
#   MUSTER_SUBMIT_FLAGS   more flags for muster submit, e.g. "--launch agent"
#   MUSTER_STARTED_AT     the start of the caller (seconds since the epoch), for the total at the end
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/quickstart_parts.sh
source scripts/quickstart_parts.sh
readonly image=localhost/muster-test-openmpi

usual_socket() {
  local socket
  for socket in "${XDG_RUNTIME_DIR:-/run/user/$UID}/podman/podman.sock" \
    "${XDG_RUNTIME_DIR:-/run/user/$UID}/docker.sock" /run/podman/podman.sock /var/run/docker.sock; do
    [[ -S $socket ]] && return
  done
  return 1
}

need_programs
if [[ -z ${DOCKER_HOST:-} ]] && ! usual_socket; then
  echo "quickstart: no Docker or Podman is running here; starts a private Podman, and stops it at the end"
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
# On a signal the script exits, which runs finish().
trap 'exit 130' INT TERM

# A task needs its image and the files that are sent with the job.
readonly files=$work/job
output=$work/output
mkdir -p "$files"
cp "$digits" "$files"
cp -r examples/data/digits "$files/data"
python3 tests/with_engine.py --load "$image" "$work/loaded"

status=0
train "$output" --image "$image" --workspace "$files" -- ./digits --data data || status=$?
[[ $status -eq 0 ]] || { "$muster" get "$job" >&2 || true; fail "the job failed (exit code $status)" "$status"; }

ranks=$("$muster" get "$job" | sed -nE 's/^LAUNCH +/ranks          /p')
show_result "$output" "$ranks"

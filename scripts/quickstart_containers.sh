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

status=0
train "$output" --image "$image" --workspace "$files" -- ./digits --data data || status=$?
[[ $status -eq 0 ]] || { "$muster" get "$job" >&2 || true; fail "the job failed (exit code $status)" "$status"; }

ranks=$("$muster" get "$job" | sed -nE 's/^LAUNCH +/ranks          /p')
show_result "$output" "$ranks"

# shellcheck shell=bash
# Shared by quickstart.sh, quickstart_containers.sh and quickstart_kubernetes.sh, which source it in the root of
# the tree, under set -euo pipefail.
#
#   MUSTER_SUBMIT_FLAGS   more flags for muster submit
#   MUSTER_STARTED_AT     the start of the caller (seconds since the epoch), for the total at the end
#   MUSTER_BUILD          the build with the programs (default: build/release)

readonly programs=${MUSTER_BUILD:-$PWD/build/release}
readonly muster=$programs/platform/muster
readonly digits=$programs/examples/digits/digits
# A user's own job may have this name, and a copy of the job (muster rerun) has this label. Only the job of a
# quickstart has both.
readonly job=quickstart label=made-by=quickstart

# All commands use the user's own server, also after `muster login` to the server of a team, whose projects are
# unknown to the own server.
export MUSTER_CONTEXT=local
unset MUSTER_SERVER MUSTER_PROJECT

fail() {
  echo "quickstart: $1" >&2
  exit "${2:-1}"
}

need_programs() {
  local program
  for program in "$muster" "$digits"; do
    [[ -x $program ]] || fail "$program is missing; run: make programs"
  done
}

# train OUTPUT [FLAG...] -- PROGRAM...: runs the program on two MPI workers. The output is shown and stored in
# the file OUTPUT. Passes the flags to muster submit, and returns its exit code.
train() {
  local output=$1 flags=() extra
  shift
  while [[ $1 != -- ]]; do
    flags+=("$1")
    shift
  done
  shift
  read -ra extra <<<"${MUSTER_SUBMIT_FLAGS:-}"
  local submit=(submit mpi "$job" --workers 2 --label "$label" "${flags[@]}" --follow "${extra[@]}" --
    mpirun --allow-run-as-root -np 2 --hostfile /generated/hostfile -bind-to none -map-by slot
    -x NCCL_DEBUG=INFO -mca pml ob1 -mca btl ^openib "$@")

  echo "\$ muster ${submit[*]}"
  "$muster" "${submit[@]}" 2>&1 | tee "$output" || return "${PIPESTATUS[0]}"
}

# show_result OUTPUT [LINES]: prints the job's accuracy and speed, from its output, then LINES, and the job's
# row of `muster list`. Fails unless the job succeeded.
show_result() {
  local accuracy speed row took
  accuracy=$(reported "$1" 'test accuracy')
  speed=$(reported "$1" 'images/s')
  [[ -n $accuracy ]] || fail "the job succeeded, but printed no test accuracy"
  [[ -n $speed ]] || fail "the job succeeded, but printed no images/s"
  row=$("$muster" list --label "$label" | awk -v job="$job" 'NR == 1 || $1 == job')
  grep -qw Succeeded <<<"$row" || fail "the job is not listed as Succeeded: $(tail -n 1 <<<"$row")"

  took=$(($(date +%s) - ${MUSTER_STARTED_AT:-$(($(date +%s) - SECONDS))}))
  echo
  echo "test accuracy  $accuracy %"
  echo "images/s       $speed"
  echo "took           $((took / 60)) min $((took % 60)) s"
  [[ -z ${2:-} ]] || echo "$2"
  echo
  echo "$row"
}

# The last value that the job printed after `label: `.
reported() {
  sed -nE "s|.*$2: +([0-9.]+).*|\1|p" "$1" | tail -n 1
}

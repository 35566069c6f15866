#!/usr/bin/env bash
# Trains a network on handwritten digits with two MPI workers under Muster, and says how it went.
# `make quickstart` calls it after the build. Exits 0 only when the job succeeded.
#
#   MUSTER_SUBMIT_FLAGS   more flags for muster submit, e.g. "--sandbox none"
#   MUSTER_STARTED_AT     when the caller began (seconds since the epoch), for the total at the end
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly muster=$PWD/build/release/platform/muster
readonly digits=$PWD/build/release/examples/digits/digits
readonly job=dist

fail() {
  echo "quickstart: $1" >&2
  exit "${2:-1}"
}

# The last value that the job printed after `label: `.
reported() {
  sed -nE "s|.*$1: +([0-9.]+).*|\1|p" "$output" | tail -n 1
}

for program in "$muster" "$digits"; do
  [[ -x $program ]] || fail "$program is missing; run: make build"
done

output=$(mktemp)
trap 'rm -f "$output"' EXIT

# The job of an earlier quickstart still has the name.
"$muster" delete --ignore-missing --force "$job"

read -ra extra <<<"${MUSTER_SUBMIT_FLAGS:-}"
submit=(submit mpi "$job" --workers 2 --follow "${extra[@]}" --
  mpirun --allow-run-as-root -np 2 --hostfile /generated/hostfile -bind-to none -map-by slot
  -x NCCL_DEBUG=INFO -mca pml ob1 -mca btl ^openib "$digits")

echo "\$ muster ${submit[*]}"
status=0
"$muster" "${submit[@]}" 2>&1 | tee "$output" || status=${PIPESTATUS[0]}
[[ $status -eq 0 ]] || fail "the job failed (exit code $status); see: $muster get $job" "$status"

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
echo
echo "$row"

#!/usr/bin/env bash
# Trains a network on handwritten digits with two MPI workers under Muster, and prints the result. `make
# quickstart` calls it after the build. Exits 0 only when the job succeeded.
#
# The job runs on the user's own server and stays there. The next quickstart deletes it, and no other job.
#
#   MUSTER_SUBMIT_FLAGS   more flags for muster submit, e.g. "--sandbox none"
#   MUSTER_STARTED_AT     the start of the caller (seconds since the epoch), for the total at the end
#   MUSTER_BUILD          the build with the programs (default: build/release)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/quickstart_parts.sh
source scripts/quickstart_parts.sh

# Deletes the job of an earlier quickstart, which has the same name. If that quickstart was interrupted, the
# job may still run.
delete_earlier() {
  local table ids
  table=$("$muster" list --label "$label" --output csv --columns id,name)
  mapfile -t ids < <(tr -d '\r' <<<"$table" | awk -F, -v job="$job" '$2 == job { print $1 }')
  [[ ${#ids[@]} -eq 0 ]] || "$muster" delete --ignore-missing --force "${ids[@]}" >/dev/null
}

need_programs
output=$(mktemp)
trap 'rm -f "$output"' EXIT
delete_earlier

status=0
train "$output" -- "$digits" || status=$?
[[ $status -eq 0 ]] || fail "the job failed (exit code $status); see: $muster get $job --context local" "$status"

show_result "$output"

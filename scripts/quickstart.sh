#!/usr/bin/env bash
# Trains a network on handwritten digits with two MPI workers under Muster, and prints the result. `make
# quickstart` calls it after the build. Exits 0 only when the job succeeded.
#
#   MUSTER_SUBMIT_FLAGS   more flags for muster submit, e.g. "--sandbox none"
#   MUSTER_STARTED_AT     the start of the caller (seconds since the epoch), for the total at the end
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/quickstart_parts.sh
source scripts/quickstart_parts.sh

need_programs
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# The job of an earlier quickstart still has the name.
"$muster" delete --ignore-missing --force "$job"

status=0
train "$output" -- "$digits" || status=$?
[[ $status -eq 0 ]] || fail "the job failed (exit code $status); see: $muster get $job" "$status"

show_result "$output"

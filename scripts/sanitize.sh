#!/usr/bin/env bash
# Runs the unit tests under the sanitizers: asan (addresses and undefined behaviour), tsan (threads). Each ends
# with the line "N passed, N failed".
#
#   scripts/sanitize.sh [asan|tsan] [PROGRAM...]
#
# Without the name of a sanitizer, runs both. PROGRAM is a test program, such as control_test; without one, runs
# the unit tests of all programs, which takes more than an hour to compile for each sanitizer on two cores.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
presets=(asan tsan)
if [[ ${1:-} == asan || ${1:-} == tsan ]]; then
  presets=("$1")
  shift
fi
readonly presets

# Each case of a test program has the program's name as its label. Without names, the labels that are excluded
# are those of tests that are no unit tests.
if [[ $# -gt 0 ]]; then
  build=(--target "$@")
  chosen=(-L "^($(IFS='|' && echo "$*"))\$")
else
  build=()
  chosen=(-LE '^(e2e|containers|frameworks|horovod|intel-mpi|kubernetes|pytorch|slurm|tensorflow|torch)$')
fi

status=0
for preset in "${presets[@]}"; do
  { cmake --preset "$preset" && cmake --build --preset "$preset" "${build[@]}" &&
    scripts/run_tests.sh "$preset" "${chosen[@]}"; } || status=1
done
exit "$status"

#!/usr/bin/env bash
# Runs every suite, one after another, and ends with a table. Run it before a release. It continues after a
# suite has failed, and exits non-zero if a suite failed. The suite gpu is skipped on a machine without a GPU.
#
#   scripts/test_all.sh [SUITE...]   all suites, or only the named ones
#
#   FUZZ_SECONDS   the time for each fuzzer (default: 60)
#
# The output of a suite goes to the terminal and to build/test-all/SUITE.log.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
readonly logs=$PWD/build/test-all
export FUZZ_SECONDS=${FUZZ_SECONDS:-60}

# suite -> its target of make
declare -rA targets=(
  [test]=test [documents]=test-documents [containers]=test-containers [intel-mpi]=test-intel-mpi
  [slurm]=test-slurm [kubernetes]=test-kubernetes [tensorflow]=test-tensorflow [horovod]=test-horovod
  [web]=test-web [frameworks]=test-frameworks [torch]=test-torch [gpu]=test-gpu [sanitize]=test-sanitize
  [fuzz]=fuzz [lint]=lint)
readonly order=(test documents containers intel-mpi slurm kubernetes tensorflow horovod frameworks torch gpu web sanitize fuzz lint)

chosen=("$@")
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${order[@]}")
for suite in "${chosen[@]}"; do
  [[ -n ${targets[$suite]:-} ]] || {
    echo "test-all: unknown suite '$suite'; there are: ${order[*]}" >&2
    exit 2
  }
done

# counts LOG: "PASSED FAILED", the sums of all its lines "N passed, N failed".
counts() {
  sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$1" |
    awk '{ passed += $1; failed += $2 } END { print passed + 0, failed + 0 }'
}

# why_not SUITE: prints why this machine cannot run the suite. Fails if it can.
why_not() {
  local status=0
  [[ $1 == gpu ]] || return
  python3 -B tests/gpu.py --machine | cut -d : -f 1 || status=$?
  [[ $status -eq 77 ]]
}

# A line of the table.
row() { printf '%-12s %8s %8s %8s  %s\n' "$@"; }

mkdir -p "$logs"
rows=()
broken=0 all_passed=0 all_failed=0
begun=$SECONDS
for suite in "${chosen[@]}"; do
  echo "=== $suite"
  if reason=$(why_not "$suite"); then
    rows+=("$(row "$suite" 0 0 0 "skipped: $reason")")
    continue
  fi
  log=$logs/$suite.log
  from=$SECONDS
  status=0
  make "${targets[$suite]}" 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
  read -r passed failed < <(counts "$log")
  verdict=ok
  # A suite that printed no count did not reach its tests.
  if [[ $status -ne 0 || $failed -ne 0 || $passed -eq 0 ]]; then
    verdict="FAILED (exit code $status)"
    broken=$((broken + 1))
  fi
  all_passed=$((all_passed + passed))
  all_failed=$((all_failed + failed))
  rows+=("$(row "$suite" "$passed" "$failed" "$(((SECONDS - from + 30) / 60))" "$verdict")")
done

echo
row suite passed failed minutes ""
printf '%s\n' "${rows[@]}"
verdict=ok
[[ $broken -eq 0 ]] || verdict="$broken of ${#chosen[@]} suites FAILED"
row total "$all_passed" "$all_failed" "$(((SECONDS - begun + 30) / 60))" "$verdict"
[[ $broken -eq 0 ]]

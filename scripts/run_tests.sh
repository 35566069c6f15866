#!/usr/bin/env bash
# Runs the tests of a build, repeats what the failed ones printed last, and ends with the line "N passed, N failed".
#
#   scripts/run_tests.sh PRESET [ctest arguments]
#
# Without a label (-L, -LE), runs all tests except those that need container engines, Slurm, Kubernetes or
# frameworks from PyPI, or take long: these have their own make targets. Exits non-zero if a test failed or
# could not run, or if there was no test to run.
#
#   MUSTER_SLOWEST   the number of slowest tests to list at the end (default: 0)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: scripts/run_tests.sh PRESET [ctest arguments]}
shift
# build/torch is a Python environment, so the build of the preset torch is in another folder.
folder=$PWD/build/$preset
if [[ $preset == torch ]]; then folder=$PWD/build/with-torch; fi
readonly report=$folder/test-results.xml
# One line for each test that failed or that could not be started.
readonly failures=$folder/Testing/Temporary/LastTestsFailed.log

# gcc 12's thread sanitizer cannot map its shadow memory if the kernel randomises addresses widely
# (vm.mmap_rnd_bits of 32), so its tests run without randomisation, if that is allowed.
runner=()
if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then runner=(setarch -R); fi

# A number from the report's head, e.g. `tests="12"`.
count() {
  sed -nE "/<testsuite/,/>/ s/.*[[:space:]]$1=\"([0-9]+)\".*/\1/p" "$report" | head -n 1
}

# Several -LE exclude only tests that match all of them, so the caller's labels replace the default.
chosen=(-LE '^(containers|frameworks|horovod|intel-mpi|kubernetes|pytorch|slurm|tensorflow|torch)$')
for word in "$@"; do
  if [[ $word == -L || $word == -LE ]]; then chosen=(); fi
done

# Most tests wait for a process or a connection more than they compute, so each core has three slots. A test
# that computes takes all three (PROCESSORS 3).
slots=$((3 * $(nproc)))

rm -f "$report" "$failures"
status=0
"${runner[@]}" ctest --preset "$preset" --parallel "$slots" --output-junit "$report" \
  "${chosen[@]}" "$@" || status=$?

total=0 failed=0 passed=0
if [[ -s $report ]]; then
  total=$(count tests)
  # The report counts as "skipped" both tests that skip themselves and tests whose program is missing.
  passed=$((total - $(count failures) - $(count skipped) - $(count disabled)))
fi
if [[ -s $failures ]]; then failed=$(wc -l <"$failures"); fi

if [[ ${MUSTER_SLOWEST:-0} -gt 0 && -s $report ]]; then
  echo "slowest, in seconds:"
  sed -nE 's/.*<testcase name="([^"]*)".* time="([0-9.]+)".*/\2 \1/p' "$report" | sort -rn |
    head -n "$MUSTER_SLOWEST" || true
fi
if [[ $failed -gt 0 && -s $report ]]; then
  scripts/failed_tests.py "$report" || true
  echo
fi
if [[ $((total - passed - failed)) -gt 0 ]]; then
  echo "$((total - passed - failed)) skipped (listed above)"
fi
if [[ $passed -eq 0 && $status -eq 0 ]]; then
  echo "no test ran: is build/$preset configured and built?" >&2
  status=1
fi
echo "$passed passed, $failed failed"
exit "$status"

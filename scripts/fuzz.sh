#!/usr/bin/env bash
# Runs every fuzzer of build/fuzz for FUZZ_SECONDS (20) each, as many side by side as there are cores, and
# ends with the line "N passed, N failed". The input of a finding is stored in build/fuzz/findings, the output
# of a fuzzer in build/fuzz/logs, and its corpus in build/fuzz/corpus. A fuzzer NAME begins with the inputs in
# fuzz/seeds/NAME, if there are any.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../build/fuzz"
mkdir -p findings logs
rm -f logs/*

# The log of a fuzzer with a finding is renamed to NAME.failed.
run() {
  local name=$1
  local corpora=("corpus/$name")
  mkdir -p "corpus/$name"
  if [[ -d ../../fuzz/seeds/${name#fuzz_} ]]; then corpora+=("../../fuzz/seeds/${name#fuzz_}"); fi
  if "fuzz/$name" -max_total_time="${FUZZ_SECONDS:-20}" -max_len=4096 -timeout=10 -rss_limit_mb=4096 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix="findings/$name-" "${corpora[@]}" >"logs/$name" 2>&1; then
    echo "$name: $(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)$/\1/p' "logs/$name") inputs"
  else
    mv "logs/$name" "logs/$name.failed"
    echo "$name found something:"
    tail -n 60 "logs/$name.failed"
  fi
}
export -f run

fuzzers=()
for fuzzer in fuzz/fuzz_*; do
  if [[ -x $fuzzer && ! -d $fuzzer ]]; then fuzzers+=("$(basename "$fuzzer")"); fi
done
[[ ${#fuzzers[@]} -gt 0 ]] || { echo "no fuzzer was built" >&2; exit 1; }
# shellcheck disable=SC2016  # for the inner shell to expand
printf '%s\0' "${fuzzers[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'run "$1"' run

failed=$(find logs -name '*.failed' | wc -l)
echo "$((${#fuzzers[@]} - failed)) passed, $failed failed"
[[ $failed -eq 0 ]]

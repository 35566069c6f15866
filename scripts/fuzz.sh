#!/usr/bin/env bash
# Runs every fuzzer of build/fuzz for FUZZ_SECONDS (20) each and stops at the first finding, whose
# input it leaves in build/fuzz/findings. What they learned is kept in build/fuzz/corpus.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../build/fuzz"
mkdir -p findings
passed=0
for fuzzer in fuzz/fuzz_*; do
  [[ -x $fuzzer && ! -d $fuzzer ]] || continue
  name=$(basename "$fuzzer")
  mkdir -p "corpus/$name"
  echo "== $name"
  "$fuzzer" -max_total_time="${FUZZ_SECONDS:-20}" -max_len=4096 -timeout=10 -rss_limit_mb=4096 \
    -verbosity=0 -print_final_stats=1 -artifact_prefix=findings/ "corpus/$name" 2>&1 |
    grep -vE '^(INFO|stat::(new|slowest|peak))' || { echo "$name found something" >&2; exit 1; }
  passed=$((passed + 1))
done
[[ $passed -gt 0 ]] || { echo "no fuzzer was built" >&2; exit 1; }
echo "$passed fuzzers found nothing"

#!/usr/bin/env bash
# Checks layout, static analysis and syntax of the whole tree without changing it. The first run takes one and a
# half hours on two cores; later runs check only files that have changed since they passed, and files that include
# those. Ends with the line "N passed, N failed", which counts checks. Requires a complete build/release and the
# packages of apt-packages-dev.txt.
#
#   scripts/lint.sh            everything
#   scripts/lint.sh --format   instead formats the C++ files
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly database=build/release/compile_commands.json

# The files of the project with a suffix, without those below build/.
sources() {
  local folder folders=()
  for folder in platform collective training examples bench fuzz tests scripts python; do
    if [[ -d $folder ]]; then folders+=("$folder"); fi
  done
  find "${folders[@]}" -type f -name "$1" -not -path '*/build/*' -print0 | sort -z
}

cpp_sources() {
  sources '*.h'
  sources '*.cc'
}

failures=()
passed=0
check() {
  local name=$1
  shift
  echo "== $name"
  if "$@"; then passed=$((passed + 1)); else failures+=("$name"); fi
}

layout() { cpp_sources | xargs -0 -r clang-format-19 --dry-run --Werror; }

tidy() {
  if [[ ! -f $database ]]; then
    echo "lint: $database is missing; run: make build" >&2
    return 1
  fi
  scripts/tidy.py "$(dirname "$database")"
}

# Each source and header includes what it uses.
alone() {
  cmake --preset alone >build/alone.log &&
    cmake --build build/alone --target training/parameter_server/rpc/generated/parameter_server.pb.h >>build/alone.log &&
    scripts/compile_alone.py build/alone
}

shell_scripts() { { sources '*.sh'; printf '%s\0' .ci/run; } | xargs -0 shellcheck; }

# Compiles in memory, so that no __pycache__ remains.
python_syntax() {
  sources '*.py' | xargs -0 -r python3 -c '
import sys
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        compile(file.read(), path, "exec")'
}

if [[ ${1:-} == --format ]]; then
  cpp_sources | xargs -0 -r clang-format-19 -i
  exit
fi

check "clang-format" layout
check "clang-tidy" tidy
check "every file alone" alone
check "shellcheck" shell_scripts
check "python" python_syntax
check "architecture" python3 tests/architecture_test.py
check "local names" python3 tests/local_names_test.py

if [[ ${#failures[@]} -gt 0 ]]; then
  echo "lint: failed: ${failures[*]}" >&2
fi
echo "$passed passed, ${#failures[@]} failed"
[[ ${#failures[@]} -eq 0 ]]

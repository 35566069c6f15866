#!/usr/bin/env bash
# Checks that an external project can use the files of `cmake --install`: with find_package, in C++ and C,
# and with pkg-config. Leaves nothing behind.
#
#   install_test.sh BUILD_FOLDER CMAKE CXX CC
set -euo pipefail

build=${1:?} cmake=${2:?} cxx=${3:?} cc=${4:?}
consumer=$(cd "$(dirname "${BASH_SOURCE[0]}")/consumer" && pwd)
# The ranks meet by a file, in a folder that must be private (mktemp makes it so).
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "install_test: $*" >&2
  exit 1
}

quietly() {
  "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "failed: $*"; }
}

# Runs two ranks of a program. Neither outlives the other by more than its own timeout.
run_two() {
  local first
  "$1" 0 "$work/meet-$2" &
  first=$!
  "$1" 1 "$work/meet-$2" || fail "rank 1 of $2 failed"
  wait "$first" || fail "rank 0 of $2 failed"
}

prefix=$work/prefix
quietly "$cmake" --install "$build" --prefix "$prefix" --component collective

quietly "$cmake" -S "$consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Release
quietly "$cmake" --build "$work/consumer"
run_two "$work/consumer/consumer_cxx" find_package_cxx
run_two "$work/consumer/consumer_c" find_package_c

pc=$(find "$prefix" -name muster-collective.pc)
[[ -n $pc ]] || fail "muster-collective.pc is not installed"
export PKG_CONFIG_PATH=${pc%/*}
library=$(dirname "${pc%/*}")
read -ra flags < <(pkg-config --cflags --libs muster-collective)
quietly "$cc" -std=c99 -pedantic -Wall -Wextra -Werror -o "$work/by_pkg_config" \
  "$consumer/consumer.c" "${flags[@]}" "-Wl,-rpath,$library"
run_two "$work/by_pkg_config" pkg_config_c
read -ra flags < <(pkg-config --cflags --libs muster-collective-cxx)
quietly "$cxx" -std=c++20 -o "$work/by_pkg_config_cxx" "$consumer/consumer.cc" "${flags[@]}"
run_two "$work/by_pkg_config_cxx" pkg_config_cxx

# The shared library exports only the C interface.
foreign=$(nm -D --defined-only "$library"/libmuster_collective.so |
  awk '{print $3}' | grep -vE '^(muster_|MUSTER_COLLECTIVE_0)' || true)
[[ -z $foreign ]] || fail "the shared library also exports: $foreign"
[[ -L $library/libmuster_collective.so.0 ]] || fail "there is no libmuster_collective.so.0"
[[ -f $library/muster-collective/muster_collective_nccl.so ]] || fail "there are no plug-ins"
"$prefix/bin/muster-collective-bench" --help >/dev/null || fail "muster-collective-bench does not run"

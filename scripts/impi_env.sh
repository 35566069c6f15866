#!/usr/bin/env bash
# Makes build/impi, a Python environment with Intel MPI in it, as `pip install impi-rt` leaves it: the
# tests of Intel MPI in sandboxes take mpirun and the library from there. Nothing where it is there.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly venv=build/impi
readonly log=build/impi.log

# The release that the test image has.
requirement=$(sed -nE 's/^readonly impi="(.*)"$/\1/p' scripts/test_images.sh)
readonly requirement

is_there() { [[ $(cat "$venv/muster-requirement" 2>/dev/null) == "$requirement" ]]; }

mkdir -p build
exec 9>build/impi.lock
flock 9
if is_there; then exit; fi

rm -rf "$venv"
if ! {
  /usr/bin/python3 -m venv "$venv" &&
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps \
      --only-binary :all: --require-hashes -r <(echo "$requirement")
} >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "impi_env: $venv could not be made; pip's words are above and in $log" >&2
  exit 1
fi
echo "$requirement" >"$venv/muster-requirement"

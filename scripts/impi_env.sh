#!/usr/bin/env bash
# Creates build/impi, a Python environment with Intel MPI, as `pip install impi-rt` installs it. The tests of
# Intel MPI in sandboxes use its mpirun and library. Does nothing if it exists.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly venv=build/impi
readonly log=build/impi.log

# The release in the test image.
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
  echo "impi_env: cannot create $venv; the output of pip is above and in $log" >&2
  exit 1
fi
echo "$requirement" >"$venv/muster-requirement"

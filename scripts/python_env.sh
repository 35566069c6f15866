#!/usr/bin/env bash
# Makes build/venv, the Python that some tests run in, from python/requirements-test.lock: the
# versions named there, each held against its hash. Does nothing where it is up to date.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly venv=build/venv
readonly lock=python/requirements-test.lock
readonly stamp=$venv/muster-lock
readonly log=build/venv.log

# Debian's, for the lock was made for it; MUSTER_PYTHON chooses another.
python=${MUSTER_PYTHON:-/usr/bin/python3}
[[ -x $python ]] || python=python3

if cmp -s "$lock" "$stamp" && "$venv/bin/python" -c '' 2>/dev/null; then
  exit
fi

mkdir -p build
# Two tests may want it at the same time.
exec 9>build/venv.lock
flock 9
if cmp -s "$lock" "$stamp"; then exit; fi

rm -rf "$venv"
if ! {
  "$python" -m venv "$venv" &&
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --require-hashes \
      --only-binary :all: -r "$lock"
} >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "python_env: $venv could not be made; pip's words are above and in $log" >&2
  exit 1
fi
cp "$lock" "$stamp"

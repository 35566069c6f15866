#!/usr/bin/env bash
# Checks the types of the Python client, for the oldest and the newest supported Python.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/python_env.sh
for version in 3.10 3.13; do
  build/venv/bin/mypy --config-file python/mypy.ini --python-version "$version" --cache-dir "build/mypy-$version" \
    python/muster
done

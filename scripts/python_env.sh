#!/usr/bin/env bash
# Makes a Python environment from a lock file: the versions named there, each held against its hash.
# Does nothing where it is up to date.
#
#   scripts/python_env.sh             build/venv, which the tests of API and client run in
#   scripts/python_env.sh tensorflow  build/tensorflow, which the tests of TensorFlow run in
#   scripts/python_env.sh torch       build/torch, a current PyTorch, which the tests of muster.torch run in
#   scripts/python_env.sh wheel       build/wheel-tools, which tests build the wheels of python/ with
#   scripts/python_env.sh horovod     build/horovod, Horovod itself over Debian's PyTorch, which bench-horovod compares
#                                     with; compiles it: 5 minutes of one core, in 1 GB of memory
#   scripts/python_env.sh horovod-suite  build/horovod-suite, pytest and what else Horovod's own tests import
#   scripts/python_env.sh chainer     build/chainer, ChainerMN over mpi4py, which a test runs as an MPI job
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "python_env: $*" >&2; }

options=() venv_options=() finish=(true)
case ${1:-} in
  "") venv=build/venv lock=python/requirements-test.lock ;;
  tensorflow)
    venv=build/tensorflow lock=python/requirements-tensorflow.lock
    # One that is left out of the lock on purpose would be taken for one that is missing.
    options=(--no-deps)
    ;;
  torch)
    venv=build/torch lock=python/requirements-torch.lock
    options=(--no-deps)
    finish=(scripts/torch_stand_ins.py build/torch)
    ;;
  wheel) venv=build/wheel-tools lock=python/requirements-build.lock ;;
  horovod-suite) venv=build/horovod-suite lock=python/requirements-horovod-suite.lock ;;
  horovod)
    venv=build/horovod lock=python/requirements-horovod.lock
    # Compiled against the PyTorch that it will run on, so not in an environment of pip's own.
    venv_options=(--system-site-packages)
    options=(--no-deps --no-build-isolation --no-binary horovod)
    export HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_MPI=1
    export HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1
    # Its own choice is 8 at once, each of 1 GB.
    MAKEFLAGS=${MAKEFLAGS:--j$(nproc)}
    export MAKEFLAGS
    ;;
  chainer)
    venv=build/chainer lock=python/requirements-chainer.lock
    # Its setup.py needs pkg_resources, which newer setuptools than Debian's no longer have; numpy is Debian's.
    venv_options=(--system-site-packages)
    options=(--no-deps --no-build-isolation --no-binary chainer)
    ;;
  *)
    say "unknown environment: $1"
    say "usage: scripts/python_env.sh [chainer|horovod|horovod-suite|tensorflow|torch|wheel]"
    exit 2
    ;;
esac
readonly venv lock options venv_options finish
readonly stamp=$venv/muster-lock
readonly log=$venv.log

# Debian's, for the lock was made for it; MUSTER_PYTHON chooses another.
python=${MUSTER_PYTHON:-/usr/bin/python3}
[[ -x $python ]] || python=python3

is_there() { cmp -s "$lock" "$stamp" && "$venv/bin/python" -c '' 2>/dev/null; }

if is_there; then exit; fi

mkdir -p build
# Two tests may want it at the same time.
exec 9>"$venv.lock"
flock 9
if is_there; then exit; fi

say "$venv: $(grep -cE '^[^ #].*==' "$lock") packages of $lock, by pip (its own words go to $log)"
rm -rf "$venv"
if ! {
  "$python" -m venv "${venv_options[@]}" "$venv" &&
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --require-hashes \
      --only-binary :all: "${options[@]}" -r "$lock" &&
    "${finish[@]}"
} >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  say "$venv could not be made; pip's words are above and in $log"
  say "it takes PyPI, or an index that pip is configured for, and room under build/"
  exit 1
fi
cp "$lock" "$stamp"
say "done in $SECONDS s"

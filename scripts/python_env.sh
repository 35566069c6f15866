#!/usr/bin/env bash
# Creates a Python environment with the versions of a lock file; each package is verified by its hash. Does
# nothing if the environment is up to date.
#
#   scripts/python_env.sh             build/venv, for the tests of the API and the client
#   scripts/python_env.sh tensorflow  build/tensorflow, for the tests of TensorFlow
#   scripts/python_env.sh torch       build/torch, a current PyTorch, for the tests of muster.torch
#   scripts/python_env.sh wheel       build/wheel-tools, with which tests build the wheels of python/
#   scripts/python_env.sh horovod     build/horovod, Horovod itself on Debian's PyTorch, for the comparison of bench-horovod;
#                                                                         compiles it: 5 minutes of one core, in 1 GB of memory
#   scripts/python_env.sh horovod-suite  build/horovod-suite, pytest and other imports of Horovod's own tests
#   scripts/python_env.sh node        build/node, Node for the web page where the system has none
#   scripts/python_env.sh optuna      build/optuna, for examples/optuna
#   scripts/python_env.sh chainer     build/chainer, ChainerMN on mpi4py, for a test that runs it as an MPI job
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "python_env: $*" >&2; }

options=() venv_options=() finish=(true)
case ${1:-} in
  "") venv=build/venv lock=python/requirements-test.lock ;;
  tensorflow)
    venv=build/tensorflow lock=python/requirements-tensorflow.lock
    # pip would treat packages that the lock deliberately omits as missing.
    options=(--no-deps)
    ;;
  torch)
    venv=build/torch lock=python/requirements-torch.lock
    options=(--no-deps)
    finish=(scripts/torch_stand_ins.py build/torch)
    ;;
  node) venv=build/node lock=python/requirements-node.lock ;;
  wheel) venv=build/wheel-tools lock=python/requirements-build.lock ;;
  optuna) venv=build/optuna lock=python/requirements-optuna.lock ;;
  horovod-suite) venv=build/horovod-suite lock=python/requirements-horovod-suite.lock ;;
  horovod)
    venv=build/horovod lock=python/requirements-horovod.lock
    # Compiled against the PyTorch with which it runs, so without pip's isolated build environment.
    venv_options=(--system-site-packages)
    options=(--no-deps --no-build-isolation --no-binary horovod)
    export HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_MPI=1
    export HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1
    # Its default is 8 compilers at once, each with 1 GB.
    MAKEFLAGS=${MAKEFLAGS:--j$(nproc)}
    export MAKEFLAGS
    ;;
  chainer)
    venv=build/chainer lock=python/requirements-chainer.lock
    # Its setup.py needs pkg_resources, which setuptools newer than Debian's lack. numpy is Debian's.
    venv_options=(--system-site-packages)
    options=(--no-deps --no-build-isolation --no-binary chainer)
    ;;
  *)
    say "unknown environment: $1"
    say "usage: scripts/python_env.sh [chainer|horovod|horovod-suite|node|optuna|tensorflow|torch|wheel]"
    exit 2
    ;;
esac
readonly venv lock options venv_options finish
readonly stamp=$venv/muster-lock
readonly log=$venv.log

# Debian's Python, for which the lock was made; MUSTER_PYTHON names another.
python=${MUSTER_PYTHON:-/usr/bin/python3}
[[ -x $python ]] || python=python3

is_there() { cmp -s "$lock" "$stamp" && "$venv/bin/python" -c '' 2>/dev/null; }

if is_there; then exit; fi

mkdir -p build
# Two tests may create it at the same time.
exec 9>"$venv.lock"
flock 9
if is_there; then exit; fi

say "$venv: $(grep -cE '^[^ #].*==' "$lock") packages of $lock, by pip (its output goes to $log)"
rm -rf "$venv"
if ! {
  "$python" -m venv "${venv_options[@]}" "$venv" &&
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --require-hashes \
      --only-binary :all: "${options[@]}" -r "$lock" &&
    "${finish[@]}"
} >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  say "cannot create $venv; the output of pip is above and in $log"
  say "this needs PyPI, or an index in pip's configuration, and disk space under build/"
  exit 1
fi
cp "$lock" "$stamp"
say "done in $SECONDS s"

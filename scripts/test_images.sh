#!/usr/bin/env bash
# Builds the images of the container tests and benchmarks, unless they exist.
#
#   scripts/test_images.sh           into build/images/
#   scripts/test_images.sh --force   builds them again
#
# The images exist in two forms: build/images/store is a Podman storage that every test service reads in
# addition to its own, so no test imports anything; build/images/NAME.tar is a docker archive for engines that
# must load an image (`podman load` accepts it, too).
#
#   muster-test-base             Debian and the libraries of programs that are compiled on this machine
#   muster-test-ssh              also an SSH server
#   muster-test-openmpi          also Open MPI 4
#   muster-test-mpich            muster-test-ssh and MPICH
#   muster-test-impi             muster-test-ssh and Intel MPI
#   muster-test-openmpi-nosshd   Open MPI without an SSH server
#   muster-test-python           Debian and Python, for the attempts of a hostile job
#   muster-test-noshell          one static program, without a shell
#   muster-test-arm64            a program for another processor
#
# No registry is used, only apt's Debian mirror, and PyPI for Intel MPI. Needs root, and the packages of
# apt-packages-containers.txt.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly out=$root/build/images
readonly script=$root/scripts/test_images.sh
readonly log=$out/log

# The last release with its own libfabric; later releases need a package that PyPI lacks.
readonly impi="impi-rt==2021.13.1 --hash=sha256:5404adc6af35a651067e69ae2a65db05366a0fbfff14a3415d311b1d3566d177"

say() { echo "images: $*"; }

fail() {
  echo "images: $1" >&2
  shift
  for line in "$@"; do echo "  $line" >&2; done
  exit 1
}

# A hash of this script without its comments. The images are built again if it changes.
recipe() { sed '/^ *#/d' "$script" | sha256sum | cut -d ' ' -f 1; }

# --- outside: whether a build is needed, and namespaces for it ---

check_system() {
  [[ $EUID -eq 0 ]] || fail "making images takes root: debootstrap and Podman's storage need it"
  local program
  for program in podman runc debootstrap gcc python3; do
    command -v "$program" >/dev/null ||
      fail "$program is missing" "scripts/deps.sh --containers installs it"
  done
}

# Podman also keeps locks, network state and namespaces outside its --root. In private namespaces it does not
# share them, and an interrupted run leaves no mount and no process behind.
build_in_private() {
  work=$(mktemp -d "${TMPDIR:-/tmp}/muster-images-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  unshare --mount --pid --fork --kill-child --mount-proc "$script" --inside "$work" >>"$log" 2>&1 ||
    { tail -n 25 "$log" >&2; fail "not built; the whole output is in ${log#"$root"/}"; }
}

# --- inside ---

enter_corner() {
  work=$1
  mkdir -p "$work"/{run,run.work,runroot,libpod,tmp}
  mount -t overlay overlay -o "lowerdir=/run,upperdir=$work/run,workdir=$work/run.work" /run
  mount -t tmpfs tmpfs /dev/shm
  # nofile and nproc: Podman's defaults exceed the limits that root may set without CAP_SYS_RESOURCE.
  cat >"$work/containers.conf" <<EOF
[containers]
default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
EOF
  cat >"$work/storage.conf" <<EOF
[storage]
driver = "overlay"
graphroot = "$out/store"
runroot = "$work/runroot"
EOF
  echo 'unqualified-search-registries = []' >"$work/registries.conf"
  export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf
  export CONTAINERS_REGISTRIES_CONF=$work/registries.conf TMPDIR=$work/tmp
}

pod() {
  podman --tmpdir "$work/libpod" "$@"
}

# The mirror that this machine's apt uses for Debian 12.
mirror() {
  # shellcheck disable=SC2016  # the format is apt-get's to expand
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 == "bookworm" && $3 == "main" { print $1; exit }'
}

# The libraries of muster, its shim and the examples.
base() {
  local mirror
  mirror=$(mirror)
  [[ -n $mirror ]] || fail "apt has no source for Debian 12 (bookworm), main"
  debootstrap --variant=minbase --include=libstdc++6,libssl3,libgrpc++1.51 bookworm "$work/root" "$mirror"
  trim "$work/root"
  tar -C "$work/root" --one-file-system -c . | pod import - localhost/muster-test-base:latest
  rm -rf "$work/root"
}

trim() {
  rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/* "$1"/usr/share/{doc,man,locale,info}/*
  echo 'path-exclude /usr/share/doc/*
path-exclude /usr/share/man/*
path-exclude /usr/share/locale/*' >"$1/etc/dpkg/dpkg.cfg.d/muster-test"
}

# build NAME FOLDER: reads the Containerfile from standard input.
build() {
  pod build --network host --layers=false --tag "localhost/$1:latest" --file - "${2:-$work/tmp}"
}

# apt-get in an image: without recommended packages, and without the lists afterwards.
readonly install='apt-get update -q && apt-get install -q -y --no-install-recommends'
readonly tidy='rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb'

with_debian() {
  build muster-test-ssh <<EOF
FROM localhost/muster-test-base
RUN $install openssh-server openssh-client && mkdir -p /run/sshd && rm -f /etc/ssh/ssh_host_* && $tidy
EOF
  build muster-test-openmpi <<EOF
FROM localhost/muster-test-ssh
RUN $install openmpi-bin && $tidy
EOF
  build muster-test-mpich <<EOF
FROM localhost/muster-test-ssh
RUN $install mpich && $tidy
EOF
  build muster-test-openmpi-nosshd <<EOF
FROM localhost/muster-test-base
RUN $install openmpi-bin && $tidy
EOF
  build muster-test-python <<EOF
FROM localhost/muster-test-base
RUN $install python3 && $tidy
EOF
}

# A wheel is a zip archive: the content of its data folder belongs under the prefix. I_MPI_ROOT names the
# prefix for Intel's mpirun, as in Intel's own images.
intel() {
  local wheel=$work/wheel prefix=$work/impi/opt/intel/mpi
  mkdir -p "$prefix/bin" "$prefix/lib" "$prefix/opt/mpi"
  echo "$impi" >"$work/requirements.txt"
  python3 -m pip download --quiet --no-deps --only-binary :all: --require-hashes \
    --dest "$wheel" --requirement "$work/requirements.txt"
  python3 -m zipfile -e "$wheel"/*.whl "$wheel/files"
  local data
  data=$(echo "$wheel"/files/*.data/data)
  cp -a "$data"/bin/{mpirun,mpiexec.hydra,hydra_bstrap_proxy,hydra_pmi_proxy,cpuinfo,impi_info} "$prefix/bin/"
  ln -s mpiexec.hydra "$prefix/bin/mpiexec"
  cp -a "$data/lib/libmpi.so.12.0.0" "$data/lib/libfabric" "$data/lib/libmpi_shm_heap_proxy.so" "$prefix/lib/"
  ln -s libmpi.so.12.0.0 "$prefix/lib/libmpi.so.12"
  ln -s libmpi.so.12 "$prefix/lib/libmpi.so"
  # The same ABI under the name that Debian's mpicc.mpich links: its programs run on this library.
  ln -s libmpi.so.12 "$prefix/lib/libmpich.so.12"
  cp -a "$data/opt/mpi/etc" "$prefix/opt/mpi/"
  cp -a "$data/share/doc/mpi/licensing" "$prefix/"
  chmod +x "$prefix"/bin/*
  build muster-test-impi "$work/impi" <<'EOF'
FROM localhost/muster-test-ssh
COPY opt /opt
ENV I_MPI_ROOT=/opt/intel/mpi
ENV PATH=/opt/intel/mpi/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ENV LD_LIBRARY_PATH=/opt/intel/mpi/lib:/opt/intel/mpi/lib/libfabric
ENV FI_PROVIDER_PATH=/opt/intel/mpi/lib/libfabric/prov
EOF
}

# /hello prints a line and exits; /hello wait runs until it gets a signal.
noshell() {
  mkdir -p "$work/noshell"
  gcc -static -Os -s -x c -o "$work/noshell/hello" - <<'EOF'
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void end(int number) { _exit(number == SIGTERM ? 0 : 1); }
int main(int count, char** words) {
  (void)words;
  signal(SIGTERM, end);
  puts("hello from an image without a shell");
  fflush(stdout);
  if (count > 1) pause();
  return 0;
}
EOF
  tar -C "$work/noshell" -c . |
    pod import --change 'CMD ["/hello"]' - localhost/muster-test-noshell:latest
}

# The kernel reads only the header of the ELF file, which names its machine (0xb7, AArch64).
arm64() {
  mkdir -p "$work/arm64/bin"
  {
    printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\267\0\1\0\0\0'
    head -c 232 /dev/zero
  } >"$work/arm64/bin/sh"
  chmod +x "$work/arm64/bin/sh"
  tar -C "$work/arm64" -c . |
    pod import --arch arm64 --change 'CMD ["/bin/sh"]' - localhost/muster-test-arm64:latest
}

archives() {
  local name
  pod images --format '{{.Repository}}' | sed -n 's,^localhost/,,p' | sort -u >"$work/names"
  while read -r name; do
    pod save --quiet --format docker-archive --output "$out/$name.tar" "localhost/$name:latest"
  done <"$work/names"
}

if [[ ${1:-} == --inside ]]; then
  enter_corner "$2"
  base
  with_debian
  intel
  noshell
  arm64
  archives
  exit
fi

case ${1:-} in
  "") ;;
  --force) rm -f "$out/recipe" ;;
  *) fail "unknown argument: $1" "usage: scripts/test_images.sh [--force]" ;;
esac
check_system
mkdir -p "$out"
exec 9>"$out/lock"
flock 9
if [[ $(cat "$out/recipe" 2>/dev/null) == "$(recipe)" ]]; then
  say "all are there"
  exit
fi
say "building (the output of debootstrap, apt and Podman goes to ${log#"$root"/})"
rm -rf "$out/store" "$out"/*.tar "$log"
build_in_private
recipe >"$out/recipe"
say "done in $SECONDS s: $(du -sh "$out" | cut -f 1) in ${out#"$root"/}"

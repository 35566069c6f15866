#!/usr/bin/env bash
# Makes the images of the Kubernetes tests, unless they exist, and prints their folder.
#
#   scripts/kubernetes_images.sh           makes what is missing
#   scripts/kubernetes_images.sh --find    only prints the folder; fails if an image is missing
#
# Each image is a docker archive NAME.tar, which holds the image localhost/NAME with the tags `test` and
# `latest`. (Kubernetes pulls an image with the tag `latest`, or without a tag, unless the pod forbids it.)
#
#   muster-test-pause     the program that holds the namespaces of a pod
#   muster-test-busybox   Debian's static busybox: a shell and small tools
#   muster-test-debian    Debian with Open MPI 4, an SSH server and client, Python, and the libraries of programs
#                         that are compiled on this machine
#
# They are kept outside the tree, beside the programs of scripts/kubernetes_programs.sh. No registry is used,
# only apt's Debian mirror. Needs root, and the packages of apt-packages-kubernetes.txt.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly script=$root/scripts/kubernetes_images.sh writer=$root/scripts/docker_archive.py
readonly cache=${MUSTER_KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster/kubernetes}
readonly names=(muster-test-pause muster-test-busybox muster-test-debian)

say() { echo "images: $*" >&2; }

fail() {
  echo "images: $1" >&2
  shift
  for line in "$@"; do echo "  $line" >&2; done
  exit 1
}

# The images belong to these two files, without the comments of the script.
key() { sed '/^ *#/d' "$script" | cat - "$writer" | sha256sum | cut -c 1-16; }

# archive NAME [ARGUMENTS...]
archive() {
  "$writer" "$place.part/$1.tar" --tag "localhost/$1:test" --tag "localhost/$1:latest" "${@:2}"
}

# The pause program. It also reaps orphans if the containers of a pod share a process namespace.
pause() {
  gcc -static -Os -s -x c -o "$work/pause" - <<'END'
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int number) { (void)number; _exit(0); }
static void reap(int number) { (void)number; while (waitpid(-1, NULL, WNOHANG) > 0) {} }
int main(void) {
  signal(SIGINT, end);
  signal(SIGTERM, end);
  signal(SIGCHLD, reap);
  for (;;) pause();
}
END
  archive muster-test-pause --entrypoint /pause "$work/pause=/pause"
}

busybox() {
  local name
  mkdir -p "$work/busybox"/{bin,etc,tmp}
  cp /bin/busybox "$work/busybox/bin/busybox"
  for name in $(/bin/busybox --list); do
    [[ $name == busybox ]] || ln -s busybox "$work/busybox/bin/$name"
  done
  chmod 1777 "$work/busybox/tmp"
  echo 'root:x:0:0:root:/root:/bin/sh' >"$work/busybox/etc/passwd"
  echo 'root:x:0:' >"$work/busybox/etc/group"
  archive muster-test-busybox --root "$work/busybox" --env PATH=/bin
}

# The mirror that this machine's apt uses for Debian 12.
mirror() {
  # shellcheck disable=SC2016  # the format is apt-get's to expand
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 == "bookworm" && $3 == "main" { print $1; exit }'
}

debian() {
  local mirror tree=$work/debian
  mirror=$(mirror)
  [[ -n $mirror ]] || fail "apt has no source for Debian 12 (bookworm), main"
  # In two steps, because debootstrap would take recommended packages for required ones.
  debootstrap --variant=minbase bookworm "$tree" "$mirror"
  chroot "$tree" sh -c "export DEBIAN_FRONTEND=noninteractive
    apt-get update -q && apt-get install -q -y --no-install-recommends openmpi-bin openssh-server \
      openssh-client python3-minimal libpython3-stdlib libstdc++6 libssl3 libgrpc++1.51 iproute2"
  mkdir -p "$tree/run/sshd"
  rm -rf "$tree"/etc/ssh/ssh_host_* "$tree"/var/cache/apt/* "$tree"/var/lib/apt/lists/* \
    "$tree"/usr/share/{doc,man,locale,info}/* "$tree"/var/log/*
  : >"$tree/etc/hostname"
  archive muster-test-debian --root "$tree" \
    --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
}

find_only=no
case ${1:-} in
  "") ;;
  --find) find_only=yes ;;
  --inside) # runs in private namespaces, with which all mounts and processes of debootstrap end
    work=$2 place=$3
    pause
    busybox
    debian
    exit
    ;;
  *) fail "unknown argument: $1" "usage: scripts/kubernetes_images.sh [--find]" ;;
esac

place=$cache/images-$(key)
if [[ ! -d $place ]]; then
  [[ $find_only == no ]] || fail "the images of the Kubernetes tests have not been made: $place is missing" \
    "scripts/kubernetes_images.sh makes them"
  [[ $EUID -eq 0 ]] || fail "making images takes root: debootstrap needs it"
  for program in debootstrap gcc python3 /bin/busybox; do
    command -v "$program" >/dev/null || fail "$program is missing" "scripts/deps.sh --kubernetes installs it"
  done
  mkdir -p "$cache"
  exec 9>"$cache/images.lock"
  flock 9
fi
# Another run may have finished while this one waited.
if [[ ! -d $place ]]; then
  work=$(mktemp -d "${TMPDIR:-/tmp}/muster-images-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  say "makes ${names[*]} (the output of debootstrap and apt goes to $cache/images.log)"
  rm -rf "$cache"/images-*.part
  mkdir "$place.part"
  unshare --mount --pid --fork --kill-child --mount-proc "$script" --inside "$work" "$place" \
    >"$cache/images.log" 2>&1 9>&- ||
    { tail -n 25 "$cache/images.log" >&2; fail "not made; the whole output is in $cache/images.log"; }
  mv "$place.part" "$place"
  say "done in $SECONDS s: $(du -sh "$place" | cut -f 1) in $place"
fi
echo "$place"

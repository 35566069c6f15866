#!/usr/bin/env bash
# Writes the image muster-server, in which a Muster server runs in a cluster, as a docker archive.
#
#   scripts/image_server.sh [OUT.tar]     (default: build/muster-server.tar)
#
# The image contains `muster`, the libraries that it loads, the certificates of public authorities, and no
# shell or other program. The libraries are those of this machine's Debian, against which `muster` was linked;
# their packages are recorded in /var/lib/dpkg/status.d, where scanners look for them, and their licences
# in /usr/share/doc. The same packages and the same `muster` make the same image.
#
# It is named localhost/muster-server, with the tags `test` and the version of Muster. It takes `muster` of
# $MUSTER_BUILD (default: build/release). No registry and no root are needed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly out=${1:-$root/build/muster-server.tar} program=${MUSTER_BUILD:-$root/build/release}/platform/muster
# The account of the chart's values `user` and `group`.
readonly account=10001
version=$(sed -nE 's/^project\(muster VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")

fail() {
  echo "image-server: $1" >&2
  shift
  for line in "$@"; do echo "  $line" >&2; done
  exit 1
}

# The libraries that a program or library needs: "NAME PATH" lines.
needed_by() { ldd "$1" | sed -nE 's,^\s*(\S+) => (/\S+) .*,\1 \2,p; s,^\s*(/\S+) \(.*,\1 \1,p'; }

# The package of a file. Its database may know a path only with or without /usr.
package_of() {
  local real
  real=$(readlink -f "$1")
  dpkg-query -S "$real" 2>/dev/null || dpkg-query -S "${real#/usr}"
}

add_libraries() {
  local name path libraries
  # libpq is loaded when the store is PostgreSQL.
  libraries=$(ldconfig -p | sed -nE 's,^\s*(libpq\.so\.5) .*=> (/\S+)$,\1 \2,p' | head -n 1)
  [[ -n $libraries ]] || fail "libpq.so.5 is missing" "scripts/deps.sh installs Debian's libpq5"
  libraries+=$'\n'$(needed_by "$program")$'\n'$(needed_by "${libraries#* }")
  while read -r name path; do
    # The loader is at its fixed path; the others are where it searches.
    if [[ $name == /* ]]; then add "$path" "$name"; else add "$path" "/usr/lib/$(basename "$name")"; fi
    package_of "$path" | cut -d : -f 1 >>"$work/packages"
  done < <(sort -u <<<"$libraries")
}

# add SOURCE TARGET [MODE]
add() { install -D -m "${3:-755}" "$(readlink -f "$1")" "$tree$2"; }

add_records() {
  local package
  while read -r package; do
    mkdir -p "$tree/var/lib/dpkg/status.d"
    dpkg-query -s "$package" >"$tree/var/lib/dpkg/status.d/$package"
    add "/usr/share/doc/$package/copyright" "/usr/share/doc/$package/copyright" 644
  done < <(sort -u "$work/packages")
}

add_settings() {
  add /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt 644
  # The time zones of schedules: the database of the package, without its copies of the same zones.
  mkdir -p "$tree/usr/share/zoneinfo"
  cp -RL /usr/share/zoneinfo/. "$tree/usr/share/zoneinfo/"
  rm -rf "$tree/usr/share/zoneinfo/right" "$tree/usr/share/zoneinfo/posix"
  add "$root/LICENSE" /usr/share/doc/muster/LICENSE 644
  printf '%s\n' 'root:x:0:0:root:/:/sbin/nologin' "muster:x:$account:$account:Muster server:/tmp:/sbin/nologin" \
    >"$tree/etc/passwd"
  printf '%s\n' root:x:0: "muster:x:$account:" >"$tree/etc/group"
  echo 'hosts: files dns' >"$tree/etc/nsswitch.conf"
  # The base of the libraries, for scanners.
  add /etc/os-release /etc/os-release 644
  mkdir -p "$tree"/{tmp,var/lib/muster,etc/muster}
  chmod 1777 "$tree/tmp"
}

[[ -x $program ]] || fail "$program is missing" "make image-server compiles it"
[[ -e /etc/ssl/certs/ca-certificates.crt ]] || fail "the package ca-certificates is missing"
[[ -e /usr/share/zoneinfo/Europe/Zurich ]] || fail "the package tzdata is missing"
work=$(mktemp -d "${TMPDIR:-/tmp}/muster-image-XXXXXX")
trap 'rm -rf "$work"' EXIT
readonly tree=$work/tree
mkdir -m 755 "$tree"
add "$program" /usr/bin/muster
strip --strip-unneeded "$tree/usr/bin/muster"
package_of "$(ldconfig -p | sed -nE 's,^\s*libpq\.so\.5 .*=> (/\S+)$,\1,p' | head -n 1)" >/dev/null ||
  fail "libpq.so.5 does not come from a package of Debian"
add_libraries
echo tzdata >>"$work/packages"
add_records
add_settings
mkdir -p "$(dirname "$out")"
"$root/scripts/docker_archive.py" "$out" --tag "localhost/muster-server:$version" --tag localhost/muster-server:test \
  --root "$tree" --root-owned --user "$account:$account" --entrypoint /usr/bin/muster --cmd server \
  --env PATH=/usr/bin --env HOME=/tmp --env MUSTER_STATE_DIR=/var/lib/muster/state
echo "image-server: localhost/muster-server:$version ($(du -h "$out" | cut -f 1)) in $out"

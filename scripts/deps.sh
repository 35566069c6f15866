#!/usr/bin/env bash
# Installs the missing Debian packages that Muster needs. Several arguments may be given.
#
#   scripts/deps.sh         the packages of apt-packages.txt: to build, run and test
#   scripts/deps.sh --programs
#                           only the sections "build" and "run" of apt-packages.txt: for `make quickstart`
#   scripts/deps.sh --dev   also apt-packages-dev.txt: to format and lint
#   scripts/deps.sh --fuzz  also apt-packages-fuzz.txt: to build the fuzzers
#   scripts/deps.sh --torch also apt-packages-torch.txt: to build training with libtorch
#   scripts/deps.sh --bench also apt-packages-torch.txt and -bench.txt: to run the benchmarks
#   scripts/deps.sh --web   also apt-packages-web.txt: to test and measure the web page
#   scripts/deps.sh --containers
#                           also apt-packages-containers.txt: to test container engines
#   scripts/deps.sh --slurm also apt-packages-slurm.txt: to test and measure on Slurm
#   scripts/deps.sh --kubernetes
#                           also apt-packages-kubernetes.txt: to test and measure on Kubernetes
#
# With MUSTER_DEPS=skip it installs nothing, for users who install the packages in another way.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
log=$root/build/deps.log
files=("$root/apt-packages.txt")
# apt-packages.txt is read up to the first line that matches this pattern; by default no line matches.
# shellcheck disable=SC2016
until='^$a'

say() { echo "deps: $*"; }

fail() {
  echo "deps: $1" >&2
  shift
  for line in "$@"; do echo "  $line" >&2; done
  exit 1
}

# "name<TAB>why" for each package of the files, once.
wanted() {
  sed "/$until/,\$d" "${files[0]}" | cat - "${files[@]:1}" |
    sed -nE 's/^([a-z0-9][a-z0-9.+-]*)[[:space:]]*(#[[:space:]]*(.*))?$/\1\t\3/p' | awk -F '\t' '!named[$1]++'
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed* ]]
}

# The lines of wanted() whose package is not installed. It calls dpkg-query only once, because it runs before every build.
missing() {
  local installed name why
  # shellcheck disable=SC2016  # the format is dpkg-query's to expand
  installed=$(wanted | cut -f 1 |
    xargs dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null |
    sed -n 's/ installed$//p' || true)
  while IFS=$'\t' read -r name why; do
    grep -qxF -- "$name" <<<"$installed" || printf '%s\t%s\n' "$name" "$why"
  done < <(wanted)
}

check_system() {
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null && return
  local name="this system"
  # shellcheck disable=SC1091
  [[ -r /etc/os-release ]] && name=$(. /etc/os-release && echo "${PRETTY_NAME:-$name}")
  fail "$name has no apt: Muster is built and tested on Debian 12, and installs packages only there" \
    "install what corresponds to $(basename "${files[0]}") by hand, then run make with MUSTER_DEPS=skip"
}

# apt would remove libboost1.74-dev, and every package that depends on it. The user must decide this.
check_boost() {
  is_installed libboost1.74-dev || return 0
  [[ " $* " == *" libboost1.81-dev "* ]] || return 0
  fail "libboost1.74-dev is installed, which conflicts with libboost1.81-dev" \
    "if nothing of yours needs it: ${sudo:+sudo }apt-get remove libboost1.74-dev, then run this again"
}

# Sets `sudo` to the prefix of commands that need root.
become_root() {
  sudo=""
  [[ $EUID -eq 0 ]] && return
  if ! command -v sudo >/dev/null; then
    fail "installing packages requires root, and sudo is not installed; run this as root:" \
      "apt-get update && apt-get install -y --no-install-recommends $1"
  fi
  sudo="sudo"
  # Prompts now: later the prompt would go into the log.
  sudo true || fail "sudo refused; run this as root:" \
    "apt-get update && apt-get install -y --no-install-recommends $1"
}

# Runs a command as root without output; if it fails, the end of the log shows the reason.
quietly() {
  # shellcheck disable=SC2086  # $sudo is empty or one word
  $sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 "$@" >>"$log" 2>&1
}

apt() {
  quietly apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@"
}

show_log_and_fail() {
  echo "--- the end of $log:" >&2
  tail -n 25 "$log" >&2
  echo "---" >&2
  fail "$@"
}

# Whether apt's lists exist and were fetched within the last day. The files have the mirror's dates, so the
# date of the folder is used.
lists_are_fresh() {
  compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null &&
    [[ -n $(find /var/lib/apt/lists -maxdepth 1 -type d -mmin -1440 2>/dev/null) ]]
}

# The given packages that apt cannot install from its current lists.
without_candidate() {
  local name
  for name in "$@"; do
    [[ $(LC_ALL=C apt-cache policy "$name") =~ 'Candidate: '[^\(] ]] || echo "$name"
  done
}

# Fails only if a needed package is still unknown: other package sources need not answer. (Without Error-Mode,
# apt-get succeeds even if no mirror answers.)
updated=no
update_lists() {
  say "apt-get update"
  updated=yes
  apt -o APT::Update::Error-Mode=any update && return
  [[ -z $(without_candidate "$@") ]] ||
    show_log_and_fail "apt-get update failed" "is this machine online? see /etc/apt/sources.list.d"
}

# Muster runs the sshd binary under the user's own name, on the loopback interface, for as long as a job
# lives, and its tests run container engines, Slurm and Kubernetes clusters of their own. Debian's packages
# would also start the system's services. To prevent this, the services are masked during the installation (by
# a link to /dev/null, which the packages respect), and disabled before the mask is removed. Works with and
# without a running systemd.
readonly units=/etc/systemd/system
quiet=()
masked=()
services_of() {
  case $1 in
    openssh-server) echo ssh.service ;;
    podman) echo podman.{socket,service} podman-restart.service podman-auto-update.{timer,service} ;;
    docker.io) echo docker.{socket,service} ;;
    containerd | docker-registry | munge | slurmctld | slurmd | slurmrestd) echo "$1.service" ;;
  esac
}

mask_services() {
  local name unit
  trap leave_services_off EXIT
  for name in "$@"; do
    for unit in $(services_of "$name"); do
      quiet+=("$unit")
      [[ ! -e $units/$unit && ! -L $units/$unit ]] || continue
      quietly mkdir -p "$units"
      quietly ln -s /dev/null "$units/$unit"
      masked+=("$unit")
    done
  done
}

unmask_services() {
  local unit
  for unit in "${quiet[@]}"; do
    # Removes the links for boot, which the package creates with and without systemd.
    quietly deb-systemd-helper disable "$unit" || true
    quietly update-rc.d "${unit%.*}" disable || true
  done
  for unit in "${masked[@]}"; do quietly rm -f "$units/$unit"; done
  [[ -d /run/systemd/system ]] || return 0
  quietly systemctl daemon-reload || true
  for unit in "${quiet[@]}"; do quietly systemctl disable --now "$unit" || true; done
}

# The tests start a PostgreSQL server of their own from the package's programs. Its installation would also
# create a database cluster with a service. This file, which the package reads, prevents that; it is removed
# afterwards, so that a cluster can be created later.
readonly cluster_settings=/etc/postgresql-common/createcluster.d
readonly no_cluster=$cluster_settings/muster-deps.conf
forbid_database_cluster() {
  trap leave_services_off EXIT
  quietly mkdir -p "$cluster_settings"
  quietly sh -c "echo 'create_main_cluster = false' >'$no_cluster'"
}

allow_database_cluster() {
  [[ -e $no_cluster ]] || return 0
  quietly rm -f "$no_cluster"
  quietly rmdir --ignore-fail-on-non-empty "$cluster_settings" || true
}

# Runs at the end, even if the installation failed or was interrupted.
leave_services_off() {
  trap - EXIT
  allow_database_cluster
  unmask_services
}

# --no-remove: the installation never removes another package.
install() {
  apt install -y --no-install-recommends --no-remove "$@" && return
  # Lists that are some hours old may name files that the mirror no longer has.
  [[ $updated == no ]] || return 1
  update_lists "$@"
  apt install -y --no-install-recommends --no-remove "$@"
}

# Adds the file of one argument to `files`.
add_packages_of() {
  case $1 in
    --programs) until='^# --- test ---' ;;
    --dev) files+=("$root/apt-packages-dev.txt") ;;
    --fuzz) files+=("$root/apt-packages-fuzz.txt") ;;
    --torch) files+=("$root/apt-packages-torch.txt") ;;
    --bench) files+=("$root/apt-packages-bench.txt" "$root/apt-packages-torch.txt") ;;
    --containers) files+=("$root/apt-packages-containers.txt") ;;
    --web) files+=("$root/apt-packages-web.txt") ;;
    --slurm) files+=("$root/apt-packages-slurm.txt") ;;
    --kubernetes) files+=("$root/apt-packages-kubernetes.txt") ;;
    *) fail "unknown argument: $1" \
      "usage: scripts/deps.sh [--programs] [--dev] [--fuzz] [--torch] [--bench] [--containers] [--slurm]" \
      "                       [--kubernetes] [--web]" ;;
  esac
}

main() {
  local argument
  for argument in "$@"; do add_packages_of "$argument"; done
  if [[ ${MUSTER_DEPS:-} == skip ]]; then
    say "skipped (MUSTER_DEPS=skip)"
    return
  fi
  check_system
  local list names name why unknown
  list=$(missing)
  if [[ -z $list ]]; then
    say "all $(wanted | wc -l) packages are installed"
    return
  fi
  mapfile -t names < <(cut -f 1 <<<"$list")

  say "installs the missing packages:"
  while IFS=$'\t' read -r name why; do printf '  %-20s %s\n' "$name" "$why"; done <<<"$list"
  become_root "${names[*]}"
  check_boost "${names[@]}"

  mkdir -p "$(dirname "$log")"
  : >"$log"
  if ! lists_are_fresh || [[ -n $(without_candidate "${names[@]}") ]]; then
    update_lists "${names[@]}"
  fi
  unknown=$(without_candidate "${names[@]}" | xargs)
  if [[ -n $unknown ]]; then
    fail "apt has no package named: $unknown" \
      "Muster is built on Debian 12 (bookworm), main; check the sources in /etc/apt/sources.list.d"
  fi

  mask_services "${names[@]}"
  [[ " ${names[*]} " != *" postgresql-15 "* ]] || forbid_database_cluster
  say "apt-get install (its output goes to ${log#"$root"/})"
  install "${names[@]}" || show_log_and_fail "apt-get install failed"
  leave_services_off
  if [[ ${#quiet[@]} -gt 0 ]]; then
    say "new services, which stay stopped and disabled, because Muster needs only their programs: ${quiet[*]}"
  fi
  say "done in $SECONDS s"
}

main "$@"

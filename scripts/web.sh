#!/usr/bin/env bash
# Builds and tests the web page (web/). Needs Node 20.19 or later: the system's, or else one from PyPI, which
# scripts/python_env.sh puts into build/node.
#
#   scripts/web.sh build   writes the types of the API's document (build/release/openapi.json), then web/dist
#   scripts/web.sh test    builds dist in a copy and compares it byte for byte with web/dist; then the unit tests,
#                          and the tests in a browser against the server in MUSTER_BUILD
#   scripts/web.sh bench   weight, times and memory of the page in a browser
#
# The packages of web/package-lock.json are installed by npm, in web/node_modules.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly root=$PWD
readonly least_node=20.19.0

say() { echo "web: $*" >&2; }

has_node() {
  local version
  version=$(node --version 2>/dev/null) || return 1
  [[ $(printf '%s\n' "v$least_node" "$version" | sort -V | head -n 1) == "v$least_node" ]]
}

find_node() {
  has_node && command -v npm >/dev/null && return
  say "no Node $least_node or later here"
  scripts/python_env.sh node
  PATH=$root/build/node/bin:$PATH
  has_node || { say "build/node has no working Node"; exit 1; }
}

# install FOLDER: the packages of its lock file, unless they are there.
install_packages() {
  local folder=$1
  local stamp=$folder/node_modules/.muster-lock
  cmp -s "$folder/package-lock.json" "$stamp" && return
  say "npm ci in ${folder#"$root"/} (its output goes to build/npm.log)"
  mkdir -p build
  if ! (cd "$folder" && npm ci --no-audit --no-fund) >build/npm.log 2>&1; then
    tail -n 20 build/npm.log >&2
    say "cannot install the packages of $folder; this needs a registry of npm"
    exit 1
  fi
  cp "$folder/package-lock.json" "$stamp"
}

# The types of the API's document are kept in the tree; they must be those of this document.
write_types() {
  (cd web && node scripts/generate_types.mjs "$root/build/release/openapi.json")
}

build() {
  write_types
  (cd web && npm run --silent check && npm run --silent build)
  say "web/dist: $(gzipped_size web/dist) bytes with gzip; the next build of the server embeds it"
}

gzipped_size() {
  local total=0 file
  while IFS= read -r file; do
    total=$((total + $(gzip -9 -n -c "$file" | wc -c)))
  done < <(find "$1" -type f | sort)
  echo "$total"
}

# The page is built again in another folder, with the same packages.
compare_builds() {
  local copy
  copy=$(mktemp -d)
  # shellcheck disable=SC2064  # the folder's name of now
  trap "rm -rf '$copy'" EXIT
  tar -C web --exclude=./node_modules --exclude=./dist -cf - . | tar -C "$copy" -xf -
  ln -s "$root/web/node_modules" "$copy/node_modules"
  if ! (cd "$copy" && node scripts/generate_types.mjs "$root/build/release/openapi.json" &&
    diff -r src/api "$root/web/src/api" >&2); then
    say "web/src/api is not that of the API's document: run make web"
    return 1
  fi
  (cd "$copy" && npm run --silent check && npm run --silent build >/dev/null)
  if ! diff -r "$copy/dist" web/dist >&2; then
    say "web/dist is not what its sources build: run make web and commit the result"
    return 1
  fi
  say "web/dist is what its sources build, byte for byte"
}

# In the folder of .prettierignore, which leaves out the generated types.
check_format() {
  (cd web && node_modules/.bin/prettier --check --log-level warn src e2e scripts)
}

browser() {
  export CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
  [[ -x $CHROMIUM ]] || { say "no chromium here: make deps-web installs it"; exit 1; }
}

# part NAME COMMAND...: runs it and counts it.
passed=0 failed=0
part() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    say "FAILED: $name"
  fi
}

# in_own_network COMMAND...: Chromium ends all its requests (ERR_NETWORK_CHANGED) when an address of the machine's
# network changes, as it does when another program starts containers. If root runs the tests, they have a network of
# their own.
in_own_network() {
  if unshare --net true 2>/dev/null; then
    # shellcheck disable=SC2016  # "$@" is that of the inner shell
    unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$@"
  else
    "$@"
  fi
}

run_tests() {
  browser
  part "the same build" compare_builds
  part "format (npm --prefix web run format mends it)" check_format
  part "unit tests" npm --prefix web run --silent test
  part "tests in a browser" in_own_network npm --prefix web run --silent e2e
  part "sessions in a browser" in_own_network node web/e2e/sessions.mjs
  echo "$passed passed, $failed failed"
  [[ $failed -eq 0 ]]
}

find_node
install_packages "$root/web"
case ${1:-} in
  build) build ;;
  test) run_tests ;;
  bench)
    browser
    python3 bench/web.py "${@:2}"
    ;;
  *)
    say "usage: scripts/web.sh build|test|bench"
    exit 2
    ;;
esac

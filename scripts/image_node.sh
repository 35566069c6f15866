#!/usr/bin/env bash
# Writes the image muster-node, from which pods get Muster's programs, as a docker archive.
#
#   scripts/image_node.sh [OUT.tar]     (default: build/muster-node.tar)
#
# The image has no base. It contains only the programs, in /. They are linked statically, except for muster-gpu-sampler,
# which loads NVIDIA's library in images that have one. Pods mount the image as a volume, or an init container copies the
# programs into a volume, so that tasks of any image can use them. The same programs make the same image.
#
# It is named localhost/muster-node, with the tags `test` and the version of Muster. It takes the programs of
# $MUSTER_BUILD (default: build/release).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly out=${1:-$root/build/muster-node.tar} programs=${MUSTER_BUILD:-$root/build/release}/platform
version=$(sed -nE 's/^project\(muster VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")

files=()
for name in muster-node muster-shim muster-helper muster-rsh muster-gpu-sampler; do
  [[ -x $programs/$name ]] || {
    echo "image-node: $programs/$name is missing; make image-node compiles it" >&2
    exit 1
  }
  files+=("$programs/$name=/$name")
done
mkdir -p "$(dirname "$out")"
"$root/scripts/docker_archive.py" "$out" --tag "localhost/muster-node:$version" --tag localhost/muster-node:test \
  --entrypoint /muster-node --env PATH=/ "${files[@]}"
echo "image-node: localhost/muster-node:$version ($(du -h "$out" | cut -f 1)) in $out"

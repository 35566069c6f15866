// The list of the files of a tree: an accepted list is the canonical text of its content, and no
// path in it leads out of the tree.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "workspace/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::workspace;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = decode_manifest(text);
  if (!manifest) return 0;
  if (encode(*manifest) != text) std::abort();
  for (const ManifestEntry& entry : manifest->entries) {
    if (!is_tree_path(entry.path)) std::abort();
    const bool is_link = entry.kind == ManifestEntry::Kind::kLink;
    if (is_link && !link_stays_inside(entry.path, entry.link)) std::abort();
    if (entry.chunks.size() != chunk_count(entry.bytes)) std::abort();
    if (!std::all_of(entry.chunks.begin(), entry.chunks.end(), is_id)) std::abort();
  }
  return 0;
}

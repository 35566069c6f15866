// Files that are sent for jobs, as they go over the wire (workspace/tree_store.h says what a tree
// is). The client asks for the tree, then which chunks the server lacks, sends these, and has the
// tree kept.
//
// Pure; as api/wire.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/table.h"

namespace muster::api {

using base::Result;

struct TreeInfo {
  std::string id;
  int64_t bytes = 0;
  int64_t files = 0;

  bool operator==(const TreeInfo&) const = default;
};

const record::Table& table_of(const TreeInfo*);
std::string tree_to_json(const TreeInfo& tree);
Result<TreeInfo> tree_from_json(std::string_view text);

/// {"chunks": ["ID", ...]}: what is asked after, what is missing, what a manifest consists of.
std::string chunk_ids_to_json(const std::vector<std::string>& ids);
Result<std::vector<std::string>> chunk_ids_from_json(std::string_view text);

/// The most bytes that one request carries of chunks, their frames included.
inline constexpr size_t kMostChunkBytes = size_t{7} << 19;  // 3.5 MiB: a body has 4

inline constexpr std::string_view kChunksType = "application/octet-stream";

/// kChunksType: each chunk behind its length, four bytes, the most significant first.
void append_chunk(std::string& body, std::string_view content);
/// Views into `body`. kInvalid where it ends in the middle of one.
Result<std::vector<std::string_view>> chunks_in(std::string_view body);

}  // namespace muster::api

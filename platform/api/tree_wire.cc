#include "api/tree_wire.h"

#include <algorithm>

#include "api/schemas.h"
#include "record/field.h"

namespace muster::api {

using base::Error;
using base::ErrorCode;
using record::field;
using record::Need;

struct ChunkIds {
  std::vector<std::string> chunks;
};

const record::Table& table_of(const ChunkIds*) {
  static const record::Table table = record::table<ChunkIds>(
      "ChunkIds",
      {field<&ChunkIds::chunks>(
          "chunks", {.need = Need::kRequired,
                     .schema = R"({"items": {"type": "string", "pattern": "^[0-9a-f]{64}$"}})"})},
      "Pieces of files, each by the SHA-256 of its content.");
  return table;
}

namespace {

constexpr size_t kLengthBytes = 4;

size_t length_at(std::string_view body) {
  size_t length = 0;
  for (const char digit : body.substr(0, kLengthBytes)) {
    length = length << 8 | static_cast<unsigned char>(digit);
  }
  return length;
}

Error chunk_cut_off() {
  return {.code = ErrorCode::kInvalid,
          .what = "the chunks end in the middle of one",
          .advice = "send each behind its length, four bytes, the most significant first"};
}

}  // namespace

const record::Table& table_of(const TreeInfo*) {
  constexpr const char* kInt64 = R"({"format": "int64"})";
  static const record::Table table =
      record::table<TreeInfo>(
          "Tree",
          {field<&TreeInfo::id>("id", {.help = "The hash of the content: the same files have the "
                                               "same id.",
                                       .need = Need::kRequired,
                                       .pattern = "^[0-9a-f]{64}$"}),
           field<&TreeInfo::bytes>("bytes",
                                   {.need = Need::kRequired, .least = 0, .schema = kInt64}),
           field<&TreeInfo::files>("files",
                                   {.need = Need::kRequired, .least = 0, .schema = kInt64})},
          "Files that a client uploaded for jobs.")
          .as_answer();
  return table;
}

void add_tree_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<TreeInfo>());
  schemas.add(record::table_for<ChunkIds>());
}

std::string tree_to_json(const TreeInfo& tree) {
  return record::to_json(tree);
}
Result<TreeInfo> tree_from_json(std::string_view text) {
  return record::from_json<TreeInfo>(text, "tree");
}

std::string chunk_ids_to_json(const std::vector<std::string>& ids) {
  return record::to_json(ChunkIds{ids});
}
Result<std::vector<std::string>> chunk_ids_from_json(std::string_view text) {
  MUSTER_TRY(ChunkIds ids, record::from_json<ChunkIds>(text, "list of chunks"));
  return std::move(ids.chunks);
}

void append_chunk(std::string& body, std::string_view content) {
  for (size_t digit = kLengthBytes; digit-- > 0;) {
    body += static_cast<char>(content.size() >> (8 * digit) & 0xff);
  }
  body += content;
}

Result<std::vector<std::string_view>> chunks_in(std::string_view body) {
  std::vector<std::string_view> chunks;
  while (!body.empty()) {
    if (body.size() < kLengthBytes) return chunk_cut_off();
    const size_t length = length_at(body);
    body.remove_prefix(kLengthBytes);
    if (body.size() < length) return chunk_cut_off();
    chunks.push_back(body.substr(0, length));
    body.remove_prefix(length);
  }
  return chunks;
}

}  // namespace muster::api

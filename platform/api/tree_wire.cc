#include "api/tree_wire.h"

#include <algorithm>

#include "api/fields.h"

namespace muster::api {

using base::Error;
using base::ErrorCode;

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

std::string tree_to_json(const TreeInfo& tree) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("id").text(tree.id);
  json.key("bytes").number(tree.bytes);
  json.key("files").number(tree.files);
  json.close('}');
  return text;
}

Result<TreeInfo> tree_from_json(std::string_view text) {
  TreeInfo tree;
  MUSTER_CHECK(read_document(text, "tree", [&](Fields& fields) {
    fields.read("id", tree.id, Need::kRequired);
    fields.read("bytes", tree.bytes, Need::kRequired);
    fields.read("files", tree.files, Need::kRequired);
  }));
  return tree;
}

std::string chunk_ids_to_json(const std::vector<std::string>& ids) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("chunks").texts(ids).close('}');
  return text;
}

Result<std::vector<std::string>> chunk_ids_from_json(std::string_view text) {
  std::vector<std::string> ids;
  MUSTER_CHECK(read_document(text, "list of chunks",
                             [&](Fields& fields) { fields.read("chunks", ids, Need::kRequired); }));
  return ids;
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

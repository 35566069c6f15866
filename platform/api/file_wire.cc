#include "api/file_wire.h"

#include <algorithm>
#include <array>

#include "api/fields.h"
#include "api/schemas.h"
#include "record/field.h"

namespace muster::api {

using Kind = Artifact::Kind;
using record::field;
using record::Sent;
using record::Table;

namespace {

constexpr std::array<record::Named<Kind>, 6> kArtifactKinds{{{Kind::kFile, "file"},
                                                             {Kind::kLink, "link"},
                                                             {Kind::kFolder, "folder"},
                                                             {Kind::kPipe, "pipe"},
                                                             {Kind::kSocket, "socket"},
                                                             {Kind::kDevice, "device"}}};

}  // namespace

record::Words<Kind> words_of(const Kind*) {
  return {
      .schema = "ArtifactKind",
      .values = kArtifactKinds,
      .help =
          "Only files can be downloaded. A folder is listed only if the server cannot read it."};
}

std::string_view to_string(Kind kind) {
  return record::word_for(kind);
}

const Table& table_of(const Artifact*) {
  static const Table table =
      record::table<Artifact>(
          "Artifact",
          {field<&Artifact::path>(
               "path",
               {.help = "Relative to the folder, with '/' between names.", .need = Need::kRequired},
               record::As::kText),
           field<&Artifact::kind>("kind", {.need = Need::kRequired}),
           field<&Artifact::bytes>("bytes", {.help = "The size of a file. 0 for other kinds.",
                                             .sent = Sent::kAlways,
                                             .least = 0}),
           field<&Artifact::modified>("modified", {.need = Need::kRequired}),
           field<&Artifact::sha256>("sha256",
                                    {.help = "The checksum of a file, if it was requested and the "
                                             "file did not change while it was read.",
                                     .pattern = "^[0-9a-f]{64}$"})})
          .as_answer();
  return table;
}

const Table& table_of(const ArtifactPage*) {
  static const Table table =
      record::table<ArtifactPage>(
          "ArtifactList",
          {field<&ArtifactPage::artifacts>("artifacts", {.need = Need::kRequired}),
           field<&ArtifactPage::truncated>("truncated", {.help = "More artifacts follow."})})
          .as_answer();
  return table;
}

void add_artifact_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<ArtifactPage>());
}

Parameters artifact_query_to_parameters(const ArtifactQuery& query) {
  Parameters parameters;
  if (query.checksums) parameters["checksums"] = "true";
  if (!query.prefix.empty()) parameters["prefix"] = query.prefix;
  if (!query.after.empty()) parameters["after"] = query.after;
  return parameters;
}

Result<ArtifactQuery> artifact_query_from_parameters(const Parameters& parameters) {
  ArtifactQuery query;
  const auto take = [&](const std::string& name, const std::string& value) -> std::string {
    if (name == "checksums") return take_flag(value, query.checksums);
    if (name == "prefix") query.prefix = value;
    if (name == "after") query.after = value;
    // The project in which the job is looked up; not part of this query.
    if (name == "prefix" || name == "after" || name == "project") return "";
    return unknown_parameter(name, {"checksums", "prefix", "after", "project"});
  };
  auto faults = read_parameters(parameters, take);
  if (faults.empty()) return query;
  return wrong_query("the query for artifacts is invalid", std::move(faults));
}

std::string_view artifacts_head() {
  return R"({"artifacts":[)";
}

void append_artifact(std::string& text, const Artifact& artifact, bool is_first) {
  if (!is_first) text += ',';
  JsonWriter json(text);
  record::write(json, artifact);
}

std::string artifacts_tail(bool truncated) {
  return truncated ? R"(],"truncated":true})" : "]}";
}

std::string artifacts_to_json(const ArtifactPage& page) {
  return record::to_json(page);
}
Result<ArtifactPage> artifacts_from_json(std::string_view text) {
  return record::from_json<ArtifactPage>(text, "list of artifacts");
}

std::string etag_of(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

using base::Error;
using base::ErrorCode;
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
      "Pieces of files, identified by the SHA-256 of their content.");
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
          .what = "the body ends within a chunk",
          .advice = "send the length before each chunk: four bytes, most significant first"};
}

}  // namespace

const record::Table& table_of(const TreeInfo*) {
  constexpr const char* kInt64 = R"({"format": "int64"})";
  static const record::Table table =
      record::table<TreeInfo>(
          "Tree",
          {field<&TreeInfo::id>("id",
                                {.help = "The hash of the content: equal files have equal ids.",
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

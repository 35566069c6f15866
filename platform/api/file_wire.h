// Artifacts of a job, as sent on the wire.
//
// A list comes in pages: `truncated` means that more paths follow, to be requested with after=.
// Paths may contain any bytes; paths that are not UTF-8 are {"base64": "..."}.
//
// Pure; see api/wire.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/query_parameters.h"
#include "base/clock.h"
#include "base/result.h"
#include "record/table.h"
#include "record/words.h"

namespace muster::api {

using base::Result;

struct Artifact {
  /// kFolder: a folder that cannot be read; its path ends with '/'. Only files have bytes and can
  /// be downloaded.
  enum class Kind { kFile, kLink, kFolder, kPipe, kSocket, kDevice };
  std::string path;  ///< relative to the folder, '/' between names
  Kind kind = Kind::kFile;
  int64_t bytes = 0;
  base::Time modified;
  std::string sha256;  ///< hexadecimal; empty: not requested, or the file is changing

  bool operator==(const Artifact&) const = default;
};

/// "file", "link", "folder", "pipe", "socket", "device".
std::string_view to_string(Artifact::Kind kind);

const record::Table& table_of(const Artifact*);
record::Words<Artifact::Kind> words_of(const Artifact::Kind*);

struct ArtifactPage {
  std::vector<Artifact> artifacts;  ///< by path, bytewise
  bool truncated = false;

  bool operator==(const ArtifactPage&) const = default;
};

const record::Table& table_of(const ArtifactPage*);

struct ArtifactQuery {
  bool checksums = false;
  std::string prefix;  ///< of the paths
  std::string after;   ///< only paths that sort after this one
};

Parameters artifact_query_to_parameters(const ArtifactQuery& query);
/// kInvalid: one fault for each parameter that is invalid or unknown.
Result<ArtifactQuery> artifact_query_from_parameters(const Parameters& parameters);

std::string artifacts_to_json(const ArtifactPage& page);
Result<ArtifactPage> artifacts_from_json(std::string_view text);

/// The same page in pieces: the text before the first artifact, each artifact, and the text after
/// the last.
std::string_view artifacts_head();
void append_artifact(std::string& text, const Artifact& artifact, bool is_first);
std::string artifacts_tail(bool truncated);

/// The parameters for the file and its first byte.
inline constexpr std::string_view kArtifactPath = "path";
/// A tag for the headers "if-match" and "etag".
std::string etag_of(std::string_view text);

// Files sent for jobs (workspace/tree_store.h describes trees). The client asks for the tree, then
// for the chunks that the server lacks, sends these, and has the tree stored.
//
// Pure; see api/wire.h.

struct TreeInfo {
  std::string id;
  int64_t bytes = 0;
  int64_t files = 0;

  bool operator==(const TreeInfo&) const = default;
};

const record::Table& table_of(const TreeInfo*);
std::string tree_to_json(const TreeInfo& tree);
Result<TreeInfo> tree_from_json(std::string_view text);

/// {"chunks": ["ID", ...]}: requested chunks, missing chunks, or the chunks of a manifest.
std::string chunk_ids_to_json(const std::vector<std::string>& ids);
Result<std::vector<std::string>> chunk_ids_from_json(std::string_view text);

/// The maximum size of the chunks in one request, including their frames.
inline constexpr size_t kMostChunkBytes = size_t{7} << 19;  // 3.5 MiB: a body has at most 4

inline constexpr std::string_view kChunksType = "application/octet-stream";

/// kChunksType: each chunk is preceded by its length, four bytes, most significant first.
void append_chunk(std::string& body, std::string_view content);
/// Views into `body`. kInvalid: it ends within a chunk.
Result<std::vector<std::string_view>> chunks_in(std::string_view body);

}  // namespace muster::api

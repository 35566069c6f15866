// What a job has left in its artifacts folder, as it goes over the wire.
//
// A list comes in pages: `truncated` says that more follow its last path, to be asked for with
// after=. Paths are any bytes; those that are no text are {"base64": "..."}.
//
// Pure; as api/wire.h.
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
  /// kFolder: one that cannot be looked into, with a '/' behind its path. Only files have bytes,
  /// and can be fetched.
  enum class Kind { kFile, kLink, kFolder, kPipe, kSocket, kDevice };
  std::string path;  ///< relative to the folder, '/' between names
  Kind kind = Kind::kFile;
  int64_t bytes = 0;
  base::Time modified;
  std::string sha256;  ///< in hexadecimal; empty: not asked for, or it changes right now

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
  std::string after;   ///< only paths behind this one
};

Parameters artifact_query_to_parameters(const ArtifactQuery& query);
/// kInvalid with every parameter that is wrong or unknown.
Result<ArtifactQuery> artifact_query_from_parameters(const Parameters& parameters);

std::string artifacts_to_json(const ArtifactPage& page);
Result<ArtifactPage> artifacts_from_json(std::string_view text);

/// The same page piece by piece: what stands before the first, each, and behind the last.
std::string_view artifacts_head();
void append_artifact(std::string& text, const Artifact& artifact, bool is_first);
std::string artifacts_tail(bool truncated);

/// Which file is meant, and from where on.
inline constexpr std::string_view kArtifactPath = "path";
/// As a header "if-match" has it, and "etag" says it.
std::string etag_of(std::string_view text);

// Files that are sent for jobs, as they go over the wire (workspace/tree_store.h says what a tree
// is). The client asks for the tree, then which chunks the server lacks, sends these, and has the
// tree kept.
//
// Pure; as api/wire.h.

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

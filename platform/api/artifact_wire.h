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

}  // namespace muster::api

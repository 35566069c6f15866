// The two slow answers about artifacts: a list with checksums, and the bytes of a file. Both read
// on threads of their own, so that neither a slow disk nor a very large file blocks the loop. Both
// end when their client disconnects.
//
// On the EventLoop's thread, except ChecksumCache, which is thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "http/message.h"
#include "workspace/left_files.h"

namespace muster::server {

/// The checksums of files that were read, as long as the files do not change.
class ChecksumCache {
 public:
  std::optional<std::string> find(const workspace::FileState& state) const;
  void keep(const workspace::FileState& state, const std::string& sum);

 private:
  mutable std::mutex mutex_;
  std::map<workspace::FileState, std::string> sums_;
};

/// The threads that read.
struct ArtifactWorkers {
  explicit ArtifactWorkers(base::EventLoop& loop) : reading(loop), summing(loop) {}

  ChecksumCache sums;
  base::Background reading;
  /// Separate, so that downloads do not wait for checksums.
  base::Background summing;
};

/// Whether the caller may still see the artifacts.
using MayGoOn = std::function<bool()>;

/// A page as JSON, with the checksum of each file that does not change while it is read.
std::shared_ptr<http::BodyStream> checksum_stream(std::shared_ptr<ArtifactWorkers> workers,
                                                  std::filesystem::path folder,
                                                  workspace::LeftFiles page, MayGoOn may_go_on);

/// `length` bytes of an open file from `offset` on. Ends early if the file was truncated meanwhile.
std::shared_ptr<http::BodyStream> file_stream(std::shared_ptr<ArtifactWorkers> workers,
                                              workspace::OpenedFile file, int64_t offset,
                                              int64_t length, MayGoOn may_go_on);

/// A file as the API lists it.
std::string artifact_json(const workspace::LeftFile& file, const std::string& sum, bool is_first);

}  // namespace muster::server

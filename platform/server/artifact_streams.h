// The two answers on artifacts that take their time: a list with checksums, and the bytes of a
// file. Both read on threads of their own, so that neither a slow disk nor somebody's hundreds of
// gigabytes hold up the loop; and both end with the client that asked.
//
// On the EventLoop's thread, but for ChecksumCache, which is thread-safe.
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

/// The sums of files that were read once, for as long as they are not changed.
class ChecksumCache {
 public:
  std::optional<std::string> find(const workspace::FileState& state) const;
  void keep(const workspace::FileState& state, const std::string& sum);

 private:
  mutable std::mutex mutex_;
  std::map<workspace::FileState, std::string> sums_;
};

/// Where work is done.
struct ArtifactWorkers {
  explicit ArtifactWorkers(base::EventLoop& loop) : reading(loop), summing(loop) {}

  ChecksumCache sums;
  base::Background reading;
  /// Of its own: nobody's download waits until another's files are summed up.
  base::Background summing;
};

/// Whether the caller may still see what it asked for.
using MayGoOn = std::function<bool()>;

/// A page as JSON, with the sum of each file that stays the same while it is read.
std::shared_ptr<http::BodyStream> checksum_stream(std::shared_ptr<ArtifactWorkers> workers,
                                                  std::filesystem::path folder,
                                                  workspace::LeftFiles page, MayGoOn may_go_on);

/// `length` bytes of an open file from `offset` on. Ends early where the file was cut meanwhile.
std::shared_ptr<http::BodyStream> file_stream(std::shared_ptr<ArtifactWorkers> workers,
                                              workspace::OpenedFile file, int64_t offset,
                                              int64_t length, MayGoOn may_go_on);

/// A file of a list as the API has it.
std::string artifact_json(const workspace::LeftFile& file, const std::string& sum, bool is_first);

}  // namespace muster::server

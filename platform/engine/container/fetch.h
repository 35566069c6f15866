// Fetches a folder out of a container into one of this machine: first the whole archive into a
// file beside it, then, on a thread of its own, what is in it. It comes from where a task ran,
// which may be hostile (workspace/tar_unpack.h).
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/container/docker_client.h"

namespace muster::engine {

class Fetch {
 public:
  using Done = std::function<void(base::Result<void>)>;

  explicit Fetch(base::EventLoop& loop);

  /// `content`: of the folder `path`, merged into `folder`, which is there. `most`: bytes of the
  /// archive; kExhausted beyond. Calls `done` later, and never when this is gone.
  void content(DockerClient& client, const std::string& container, const std::string& path,
               const std::filesystem::path& folder, int64_t most, Done done);

 private:
  struct Transfer;
  void unpack(const std::shared_ptr<Transfer>& transfer);

  std::set<std::shared_ptr<Transfer>> transfers_;
  base::Background unpacking_;
};

}  // namespace muster::engine

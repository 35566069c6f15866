// Brings the files that were sent with a job to a node that does not share the server's folder, to
// where the process engine looks for them (engine/process/trees.h). Several muster-nodes of a gang
// may be at it on one node: what is brought first stays.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/slurm/folder_streams.h"
#include "engine/slurm/node_hub.h"

namespace muster::engine::slurm {

class TreeFetch {
 public:
  using Line = base::Result<std::shared_ptr<NodeConnection>>;
  /// Makes the connection of a stream.
  using Open = std::function<std::shared_ptr<void>(uint64_t stream, std::function<void(Line)>)>;
  using Done = std::function<void(base::Result<void>)>;

  TreeFetch(base::EventLoop& loop, Open open) : open_(std::move(open)), receiver_(loop) {}

  /// `trees`: by volume, the stream of its tree, or 0. `job`: the job's folder. `done`: once,
  /// later.
  void fetch(const std::filesystem::path& job, const std::vector<uint64_t>& trees, Done done);

 private:
  void fetch_next();
  void receive(Line line);
  base::Result<void> keep() const;

  Open open_;
  FolderReceiver receiver_;
  std::filesystem::path job_;
  std::vector<uint64_t> trees_;
  Done done_;
  size_t volume_ = 0;
  std::shared_ptr<void> opening_;
};

}  // namespace muster::engine::slurm

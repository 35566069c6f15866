// What folders hold, by connections of muster-nodes (node_wire.h): a tar in pieces, and its end. A
// job's files go to nodes that do not share the server's folder; its artifacts come back.
//
// On the loop's thread, which both must not outlive.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <set>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/slurm/node_hub.h"

namespace muster::engine::slurm {

/// Sends folders, each as fast as its connection takes it.
class FolderSender {
 public:
  /// What is in the folder. Where it cannot be read the other end is told so.
  void send(std::shared_ptr<NodeConnection> line, const std::filesystem::path& folder);

 private:
  struct Sending;
  void go_on(const std::shared_ptr<Sending>& sending);

  std::set<std::shared_ptr<Sending>> sendings_;
};

/// Receives folders.
class FolderReceiver {
 public:
  using Done = std::function<void(base::Result<void>)>;

  explicit FolderReceiver(base::EventLoop& loop) : loop_(loop), unpacking_(loop) {}

  /// What comes is merged into `folder`, which is there, when all of it has come. `done` is called
  /// once, later, and never when this is gone. `most`: bytes, kExhausted beyond; 0: any number.
  void receive(std::shared_ptr<NodeConnection> line, const std::filesystem::path& folder,
               int64_t most, Done done);

 private:
  struct Receiving;
  void ended(const std::shared_ptr<Receiving>& receiving, base::Result<void> how);

  base::EventLoop& loop_;
  std::set<std::shared_ptr<Receiving>> receivings_;
  base::Background unpacking_;
};

}  // namespace muster::engine::slurm

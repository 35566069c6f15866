// Folders sent over connections of muster-nodes (messages.h): a tar in pieces, and its end. The
// files that a job brings go to nodes that do not share the server's folder; artifacts come back.
//
// On the loop's thread, which none of these classes must outlive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/node/connection.h"

namespace muster::engine::node {

/// Sends folders, each as fast as its connection takes it.
class FolderSender {
 public:
  /// A file that fails after some of it was sent.
  enum class FailedFile {
    kEndsTransfer,  ///< with an error: a job must not run with a false copy
    kIsPadded,      ///< with zeros, and noted: the other files arrive
  };

  /// Sends the content of the folder. If it cannot be read, the other end gets the error; of files
  /// that cannot be read, it gets notes.
  void send(std::shared_ptr<NodeConnection> line, const std::filesystem::path& folder,
            FailedFile failed_file = FailedFile::kEndsTransfer);

 private:
  struct Sending;
  void go_on(const std::shared_ptr<Sending>& sending);

  std::set<std::shared_ptr<Sending>> sendings_;
};

/// Receives folders.
class FolderReceiver {
 public:
  using Done = std::function<void(base::Result<void>)>;
  /// The progress of a transfer.
  struct Progress {
    std::function<void()> on_piece;
    /// All of it has arrived, and is about to be unpacked. `notes`: what the other end left out.
    std::function<void(const std::vector<std::string>& notes)> on_complete;
  };

  explicit FolderReceiver(base::EventLoop& loop) : loop_(loop), unpacking_(loop) {}

  /// Merges the received tree into `folder`, which exists, once all of it has arrived. Calls `done`
  /// once, later; never after the receiver is destroyed. `most`: in bytes, kRefused beyond; 0: no
  /// limit.
  void receive(std::shared_ptr<NodeConnection> line, const std::filesystem::path& folder,
               int64_t most, Done done, Progress progress = {});

 private:
  struct Receiving;
  void ended(const std::shared_ptr<Receiving>& receiving, base::Result<void> how);

  base::EventLoop& loop_;
  std::set<std::shared_ptr<Receiving>> receivings_;
  base::Background unpacking_;
};

/// Fetches the trees of a job to a node that does not share the server's folder, to where the
/// process engine looks for them (folder/trees.h). Several muster-nodes of a gang may fetch the
/// same tree to one node: each writes a draft of its own and renames it; the first rename wins.
class TreeFetch {
 public:
  using Line = base::Result<std::shared_ptr<NodeConnection>>;
  /// Opens the connection of a stream.
  using Open = std::function<std::shared_ptr<void>(uint64_t stream, std::function<void(Line)>)>;
  using Done = std::function<void(base::Result<void>)>;

  TreeFetch(base::EventLoop& loop, Open open) : open_(std::move(open)), receiver_(loop) {}

  /// `job`: the job's folder. `trees`: by volume, the stream of its tree, or 0. `places`: by volume,
  /// the existing folder that gets the tree, in a container of its own; empty: the job's folder gets
  /// the trees. Calls `done` once, later.
  void fetch(const std::filesystem::path& job, const std::vector<uint64_t>& trees,
             std::vector<std::filesystem::path> places, Done done);

 private:
  void fetch_next();
  void receive(Line line);
  base::Result<void> keep() const;

  Open open_;
  FolderReceiver receiver_;
  std::filesystem::path job_;
  std::vector<uint64_t> trees_;
  std::vector<std::filesystem::path> places_;
  Done done_;
  size_t volume_ = 0;
  std::shared_ptr<void> opening_;
};

}  // namespace muster::engine::node

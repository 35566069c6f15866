#include "engine/node/folder_streams.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "base/files.h"
#include "engine/folder/fetched_tar.h"
#include "workspace/tar_pack.h"

namespace muster::engine::node {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

// --- sending

struct FolderSender::Sending {
  std::shared_ptr<NodeConnection> line;
  std::optional<workspace::TarPacker> packer;
  std::vector<std::string> notes;
  size_t more_notes = 0;
  bool is_over = false;

  void note(const std::string& text) {
    constexpr size_t kMostNotes = 20;
    if (notes.size() < kMostNotes) {
      notes.push_back(text);
    } else {
      ++more_notes;
    }
  }
  std::vector<std::string> all_notes() const {
    std::vector<std::string> all = notes;
    if (more_notes > 0) all.push_back("and " + std::to_string(more_notes) + " more");
    return all;
  }
};

void FolderSender::send(std::shared_ptr<NodeConnection> line, const fs::path& folder,
                        FailedFile failed_file) {
  auto sending = std::make_shared<Sending>();
  sending->line = std::move(line);
  const std::weak_ptr<Sending> weak = sending;
  auto packer =
      workspace::TarPacker::open(folder.string() + "/.", [weak](const workspace::CopyNote& note) {
        const auto still = weak.lock();
        if (still && note.kind == workspace::CopyNote::Kind::kFailed) still->note(note.text);
      });
  sendings_.insert(sending);
  sending->line->listen({.on_message = [](const NodeMessage&) {},
                         .on_end =
                             [this, weak](const std::string&) {
                               if (const auto still = weak.lock()) sendings_.erase(still);
                             },
                         .on_drain =
                             [this, weak] {
                               if (const auto still = weak.lock()) go_on(still);
                             }});
  if (!packer) {
    sending->is_over = true;
    return sending->line->send(StreamEnd{.error = packer.error(), .notes = {}});
  }
  if (failed_file == FailedFile::kIsPadded) packer->pad_failed_files();
  sending->packer.emplace(*std::move(packer));
  go_on(sending);
}

/// A finished transfer is kept until the other end closes the connection, so that all of it
/// arrives.
void FolderSender::go_on(const std::shared_ptr<Sending>& sending) {
  while (!sending->is_over && sending->line->waiting() <= NodeConnection::kHigh) {
    const auto piece = sending->packer->next();
    sending->is_over = !piece || piece->empty();
    if (!sending->is_over) {
      sending->line->send(StreamBytes{.bytes = std::string(*piece)});
      continue;
    }
    StreamEnd end{.error = {}, .notes = sending->all_notes()};
    if (!piece) end.error = piece.error();
    sending->line->send(end);
    sending->packer.reset();
  }
}

// --- receiving

struct FolderReceiver::Receiving {
  std::shared_ptr<NodeConnection> line;
  std::optional<FetchedTar> tar;
  fs::path folder;
  Done done;
  Progress progress;
  Result<void> outcome;
  bool is_over = false;
};

void FolderReceiver::receive(std::shared_ptr<NodeConnection> line, const fs::path& folder,
                             int64_t most, Done done, Progress progress) {
  auto receiving = std::make_shared<Receiving>();
  receiving->line = std::move(line);
  receiving->folder = folder;
  receiving->done = std::move(done);
  receiving->progress = std::move(progress);
  receivings_.insert(receiving);
  auto tar = FetchedTar::open(folder, most);
  if (!tar) return ended(receiving, std::move(tar).error());
  receiving->tar.emplace(*std::move(tar));
  const std::weak_ptr<Receiving> weak = receiving;
  receiving->line->listen(
      {.on_message =
           [this, weak](const NodeMessage& message) {
             const auto still = weak.lock();
             if (!still || still->is_over) return;
             if (const auto* const piece = std::get_if<StreamBytes>(&message)) {
               auto taken = still->tar->take(piece->bytes);
               if (!taken) return ended(still, std::move(taken));
               if (still->progress.on_piece) still->progress.on_piece();
             } else if (const auto* const end = std::get_if<StreamEnd>(&message)) {
               const auto& on_complete = still->progress.on_complete;
               if (!end->error && on_complete) on_complete(end->notes);
               ended(still, end->error ? Result<void>(*end->error) : Result<void>{});
             }
           },
       .on_end =
           [this, weak](const std::string& why) {
             const auto still = weak.lock();
             if (!still || still->is_over) return;
             ended(still, Error{.code = ErrorCode::kUnavailable,
                                .what = "the connection to the node was lost: " + why});
           }});
}

void FolderReceiver::ended(const std::shared_ptr<Receiving>& receiving, Result<void> how) {
  receiving->is_over = true;
  receiving->outcome = std::move(how);
  // A handler of it may be running.
  loop_.post([line = std::exchange(receiving->line, nullptr)] {});
  unpacking_.run(
      [receiving] {
        if (receiving->outcome) receiving->outcome = receiving->tar->unpack_into(receiving->folder);
      },
      [this, receiving] {
        receivings_.erase(receiving);
        receiving->done(receiving->outcome);
      });
}

// --- fetching trees

namespace {

fs::path volume_folder(const fs::path& job, size_t volume) {
  return job / "trees" / std::to_string(volume);
}

/// This process's own draft.
fs::path tree_draft(const fs::path& job, size_t volume) {
  return job / "trees" / (".draft-" + std::to_string(volume) + "-" + std::to_string(::getpid()));
}

Error tree_error(Error error) {
  error.what = "cannot send the job's files to the node: " + error.what;
  return error;
}

}  // namespace

void TreeFetch::fetch(const fs::path& job, const std::vector<uint64_t>& trees,
                      std::vector<fs::path> places, Done done) {
  job_ = job;
  trees_ = trees;
  places_ = std::move(places);
  done_ = std::move(done);
  volume_ = 0;
  fetch_next();
}

void TreeFetch::fetch_next() {
  while (volume_ < trees_.size() && trees_[volume_] == 0) ++volume_;
  if (volume_ == trees_.size()) return std::exchange(done_, nullptr)({});
  opening_ = open_(trees_[volume_], [this](Line line) { receive(std::move(line)); });
}

void TreeFetch::receive(Line line) {
  if (!line) return std::exchange(done_, nullptr)(tree_error(std::move(line).error()));
  const bool has_place = !places_.empty();
  const fs::path draft = has_place ? places_[volume_] : tree_draft(job_, volume_);
  auto made = has_place ? Result<void>() : base::make_private_folder(draft);
  if (!made) return std::exchange(done_, nullptr)(tree_error(std::move(made).error()));
  receiver_.receive(*std::move(line), draft, 0, [this](Result<void> received) {
    if (received && places_.empty()) received = keep();
    if (!received) return std::exchange(done_, nullptr)(tree_error(std::move(received).error()));
    ++volume_;
    fetch_next();
  });
}

Result<void> TreeFetch::keep() const {
  const fs::path draft = tree_draft(job_, volume_);
  std::error_code error;
  fs::rename(draft, volume_folder(job_, volume_), error);
  if (!error) return {};
  if (fs::exists(volume_folder(job_, volume_))) return base::remove_tree(draft);
  return base::system_error("cannot rename " + draft.string(), error.value());
}

}  // namespace muster::engine::node

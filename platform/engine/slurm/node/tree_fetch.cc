#include "engine/slurm/node/tree_fetch.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "base/files.h"

namespace muster::engine::slurm {

namespace fs = std::filesystem;

using base::Error;
using base::Result;

namespace {

fs::path volume_folder(const fs::path& job, size_t volume) {
  return job / "trees" / std::to_string(volume);
}

/// Of this process alone.
fs::path tree_draft(const fs::path& job, size_t volume) {
  return job / "trees" / (".draft-" + std::to_string(volume) + "-" + std::to_string(::getpid()));
}

Error tree_error(Error error) {
  error.what = "the files of the job cannot be brought to the node: " + error.what;
  return error;
}

}  // namespace

void TreeFetch::fetch(const fs::path& job, const std::vector<uint64_t>& trees, Done done) {
  job_ = job;
  trees_ = trees;
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
  const fs::path draft = tree_draft(job_, volume_);
  if (auto made = base::make_private_folder(draft); !made) {
    return std::exchange(done_, nullptr)(tree_error(std::move(made).error()));
  }
  receiver_.receive(*std::move(line), draft, 0, [this](Result<void> received) {
    if (received) received = keep();
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

}  // namespace muster::engine::slurm

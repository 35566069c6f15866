#include "engine/slurm/record_keeper.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/unique_fd.h"

namespace muster::engine::slurm {

namespace fs = std::filesystem;

using base::Result;

namespace {

/// Beyond, the file system as a whole is synced: as long as one file's turn takes, it is cheaper.
constexpr size_t kFewRecords = 4;

std::string record_draft(const fs::path& path) {
  return path.string() + ".draft";
}

Result<void> sync(const fs::path& path, int flags) {
  const base::UniqueFd file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0) {
    return base::system_error("cannot keep '" + path.string() + "'", errno);
  }
  return {};
}

/// Of everything on that disk.
Result<void> sync_all(const fs::path& folder) {
  const base::UniqueFd file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file || ::syncfs(file.get()) != 0) {
    return base::system_error("cannot sync the disk of '" + folder.string() + "'", errno);
  }
  return {};
}

Result<void> put_in_place(const fs::path& path) {
  std::error_code error;
  fs::rename(record_draft(path), path, error);
  if (error) return base::system_error("cannot keep '" + path.string() + "'", error.value());
  return {};
}

Result<void> sync_folders(const fs::path& path) {
  MUSTER_CHECK(sync(path.parent_path(), O_RDONLY | O_DIRECTORY));
  return sync(path.parent_path().parent_path(), O_RDONLY | O_DIRECTORY);
}

}  // namespace

void RecordKeeper::keep(fs::path path, const GangRecord& record, Done done) {
  waiting_.push_back(
      {.path = std::move(path), .text = encode(record), .done = std::move(done), .outcome = {}});
  if (!is_writing_) write_all();
}

void RecordKeeper::write_all() {
  is_writing_ = true;
  const auto wishes = std::make_shared<std::vector<Wish>>(std::exchange(waiting_, {}));
  writing_.run([wishes] { write(*wishes); },
               [this, wishes] {
                 is_writing_ = false;
                 if (!waiting_.empty()) write_all();
                 for (Wish& wish : *wishes) wish.done(std::move(wish.outcome));
               });
}

/// On the other thread. What is renamed is on the disk before, and its name after.
void RecordKeeper::write(std::vector<Wish>& wishes) {
  const bool together = wishes.size() > kFewRecords;
  const auto each = [&](const std::function<Result<void>(const Wish&)>& step) {
    for (Wish& wish : wishes) {
      if (wish.outcome) wish.outcome = step(wish);
    }
  };
  const auto sync_together = [&] {
    auto synced = sync_all(wishes.front().path.parent_path().parent_path().parent_path());
    each([&](const Wish&) { return synced; });
  };
  each([](const Wish& wish) { return base::write_file(record_draft(wish.path), wish.text); });
  if (together) {
    sync_together();
  } else {
    each([](const Wish& wish) { return sync(record_draft(wish.path), O_WRONLY); });
  }
  each([](const Wish& wish) { return put_in_place(wish.path); });
  if (together) {
    sync_together();
  } else {
    each([](const Wish& wish) { return sync_folders(wish.path); });
  }
}

}  // namespace muster::engine::slurm

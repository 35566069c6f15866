#include "engine/folder/mirror.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/units.h"
#include "engine/log_frame.h"
#include "engine/metric_log.h"
#include "engine/rank_files.h"
#include "engine/shim/log_writer.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// A hostile task could report more ranks only to keep the server busy.
constexpr size_t kMostRanks = 65'536;
constexpr uint64_t kMostMetrics = 4 * kMaxMetricLog;  ///< a shim starts a new file much earlier

Result<uint64_t> file_size_of(const SeldomFile& file) {
  MUSTER_TRY(const auto open, file.descriptor());
  struct stat status{};
  return ::fstat(open->get(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

Error gap(std::string_view what, uint64_t expected, uint64_t actual) {
  return {.code = ErrorCode::kInternal,
          .what = "the bytes from " + std::to_string(expected) + " to " + std::to_string(actual) +
                  " of the task's " + std::string(what) + " are missing"};
}

/// Appends the part of `bytes` that the file lacks; `at` is the place of `bytes`. `size` counts
/// every byte that was written, also if the disk then is full.
Result<void> append_missing(const SeldomFile& file, std::string_view what, uint64_t at,
                            std::string_view bytes, uint64_t& size) {
  if (at > size) return gap(what, size, at);
  if (size - at >= bytes.size()) return {};
  bytes.remove_prefix(size - at);
  MUSTER_TRY(const auto open, file.descriptor());
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(open->get(), bytes.data(), bytes.size(), static_cast<off_t>(size));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return base::system_error("cannot write the task's " + std::string(what),
                                count == 0 ? ENOSPC : errno);
    }
    size += static_cast<uint64_t>(count);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace

Result<Mirror> Mirror::open(TaskFolder folder, uint64_t log_quota,
                            const std::shared_ptr<OpenFiles>& files) {
  MUSTER_CHECK(base::make_private_folder(folder.path));
  Mirror mirror(std::move(folder), log_quota, files);
  MUSTER_TRY(mirror.log_, SeldomFile::open(files, mirror.folder_.log()));
  MUSTER_TRY(mirror.log_offset_, file_size_of(mirror.log_));
  if (const auto start = read_log_start(mirror.folder_.log_start())) {
    mirror.log_start_ = start->offset;
  }
  std::error_code ignored;
  if (fs::exists(mirror.folder_.metrics(), ignored)) {
    MUSTER_TRY(mirror.metrics_, SeldomFile::open(files, mirror.folder_.metrics()));
    MUSTER_TRY(mirror.metrics_offset_, file_size_of(mirror.metrics_));
  }
  return mirror;
}

Result<void> Mirror::take(const FollowRecord& record) {
  switch (record.kind) {
    case FollowKind::kLog:
      return take_log(record);
    case FollowKind::kLogStart:
      return take_log_start(record);
    case FollowKind::kMetrics:
      return take_metrics(record);
    case FollowKind::kRank:
      return take_rank(record);
    case FollowKind::kRunning:
      return base::write_file(folder_.running(), record.bytes);
    case FollowKind::kMpi:
      return base::write_file(folder_.mpi(), record.bytes);
    case FollowKind::kExit:
      return base::write_file(folder_.exit(), record.bytes);
    case FollowKind::kRefused:
    case FollowKind::kAnswered:
      break;
  }
  return {};
}

// A shim drops the beginning of the log itself, so a longer log was not written by a shim. The copy
// is emptied: other tasks need the disk, and the task's other records are still needed.
Result<void> Mirror::take_log(const FollowRecord& record) {
  MUSTER_CHECK(append_missing(log_, "log", record.offset, record.bytes, log_offset_));
  if (log_quota_ == 0 || log_offset_ - log_start_ <= 2 * log_quota_ + kMaxFollowRecord) return {};
  return cut_log(log_offset_, encode(LogStart{.offset = log_offset_, .quota = log_quota_}));
}

// Like the shim, writes log.start before it punches the hole (log_frame.h). If the beginning was
// dropped before it was copied, the copy has only a hole there.
Result<void> Mirror::take_log_start(const FollowRecord& record) {
  MUSTER_TRY(const LogStart before, read_log_start(folder_.log_start()));
  const fs::path draft = folder_.log_start().string() + ".told";
  MUSTER_CHECK(base::write_file(draft, record.bytes));
  const auto start = read_log_start(draft);
  std::error_code ignored;
  fs::remove(draft, ignored);
  if (!start) return start.error();
  if (start->offset <= before.offset) return {};
  if (start->offset > log_offset_) {
    MUSTER_TRY(const auto open, log_.descriptor());
    if (::ftruncate(open->get(), static_cast<off_t>(start->offset)) != 0) {
      return base::system_error("cannot write the task's log", errno);
    }
  }
  return cut_log(start->offset, record.bytes);
}

Result<void> Mirror::cut_log(uint64_t offset, std::string_view start) {
  MUSTER_CHECK(base::write_file(folder_.log_start(), start));
  log_start_ = offset;
  log_offset_ = std::max(log_offset_, offset);
  // If the file system cannot punch holes, the copy only takes more disk space.
  MUSTER_TRY(const auto open, log_.descriptor());
  [[maybe_unused]] const bool punched = punch_hole(open->get(), 0, static_cast<int64_t>(offset));
  return {};
}

// A new file replaces the old one in one step, so a reader sees either of them.
Result<void> Mirror::take_metrics(const FollowRecord& record) {
  if (record.offset > 0) {
    if (record.offset == metrics_offset_ && metrics_offset_ > kMostMetrics) {
      metrics_offset_ += record.bytes.size();
      return {};
    }
    return append_missing(metrics_, "metrics", record.offset, record.bytes, metrics_offset_);
  }
  const fs::path draft = folder_.metrics().string() + ".told";
  MUSTER_TRY(SeldomFile file, SeldomFile::open(files_, draft, O_TRUNC));
  uint64_t size = 0;
  MUSTER_CHECK(append_missing(file, "metrics", 0, record.bytes, size));
  std::error_code error;
  fs::rename(draft, folder_.metrics(), error);
  if (error) return base::system_error("cannot write the task's metrics", error.value());
  file.renamed(folder_.metrics());
  metrics_ = std::move(file);
  metrics_offset_ = size;
  return {};
}

Result<void> Mirror::take_rank(const FollowRecord& record) {
  const std::string_view text = record.bytes;
  const size_t blank = std::min(text.find(' '), text.size());
  const auto rank = base::number_of<int>(text.substr(0, blank));
  const auto size =
      blank == text.size() ? std::nullopt : base::number_of<int>(text.substr(blank + 1));
  if (!rank || *rank < kHangs || !size) {
    return Error{.code = ErrorCode::kInternal, .what = "a task reported an invalid rank"};
  }
  if (ranks_.size() >= kMostRanks || ranks_.count(*rank) > 0) return {};
  const fs::path ranks = folder_.path / "ranks";
  MUSTER_CHECK(base::make_private_folder(ranks));
  MUSTER_CHECK(base::write_file(ranks / std::to_string(*rank), std::to_string(*size) + "\n"));
  ranks_.insert(*rank);
  return {};
}

}  // namespace muster::engine

#include "engine/shim/log_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/files.h"
#include "engine/log_frame.h"

namespace muster::engine {

namespace {

// A cut removes one part in kCutsOfQuota of the quota. Frames at four times as many offsets are
// remembered as possible beginnings of the log.
constexpr uint64_t kCutsOfQuota = 16;
constexpr uint64_t kMarksOfQuota = 64;

// Space allocated after the end of a log. The first is for the last notice (two short lines). The
// second is how much is allocated at a time if the disk has room, so that few frames need to
// allocate.
constexpr int64_t kRoomForLastWords = 512;
constexpr int64_t kRoomAhead = 4096;

}  // namespace

bool punch_hole(int file, int64_t begin, int64_t end) {
  return ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin) == 0;
}

LogWriter::LogWriter(base::UniqueFd file, const base::Clock& clock, LogQuota quota)
    : file_(std::move(file)),
      clock_(clock),
      quota_(std::move(quota)),
      size_(::lseek(file_.get(), 0, SEEK_END)),
      allocated_(size_) {
  [[maybe_unused]] const bool has_room = reserve(kRoomForLastWords);
  if (quota_.bytes == 0) return;
  if (const auto start = read_log_start(quota_.start)) start_ = static_cast<int64_t>(start->offset);
}

// Appends a whole frame or nothing: what a full disk took of a frame is removed again.
bool LogWriter::append(std::string_view frame) {
  if (base::write_all(file_.get(), frame)) {
    mark();
    size_ += static_cast<int64_t>(frame.size());
    return true;
  }
  if (::lseek(file_.get(), 0, SEEK_CUR) == size_) return false;
  if (::ftruncate(file_.get(), size_) == 0) ::lseek(file_.get(), size_, SEEK_SET);
  allocated_ = size_;
  return false;
}

std::string LogWriter::loss_frame() const {
  const std::string why = ended_ ? "the log is full" : "the disk under the log was full";
  return encode_frame(clock_.now(), job::LogStream::kNotice,
                      std::to_string(lost_) + " bytes of output are lost here: " + why + "\n");
}

// Allocates space before anything is written. A reader may have read what was written, so it must
// not be removed; and without this, the notice of a loss could fit while the frame after it does
// not.
bool LogWriter::reserve(int64_t bytes) {
  if (size_ + bytes <= allocated_) return true;
  return allocate(bytes + kRoomAhead) || allocate(bytes);
}

/// A file system that cannot allocate counts as having room: the write shows whether it has.
bool LogWriter::allocate(int64_t bytes) {
  if (::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, size_, bytes) == 0) {
    allocated_ = size_ + bytes;
    return true;
  }
  return errno != ENOSPC && errno != EDQUOT;
}

void LogWriter::write(job::LogStream stream, std::string_view bytes, std::optional<int> rank) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kMaxFrame);
    bytes.remove_prefix(part.size());
    write_frame(stream, part, rank, kRoomForLastWords);
    keep_quota();
  }
}

// A notice of a loss is written only together with the output after it. By itself, the short notice
// would fit again and again where no output does. `kept`: space that must stay after the frame.
void LogWriter::write_frame(job::LogStream stream, std::string_view part, std::optional<int> rank,
                            int64_t kept) {
  const bool own_words = stream == job::LogStream::kNotice;
  if (ended_ && !own_words) {
    lost_ += part.size();
    return;
  }
  std::string frame = encode_frame(clock_.now(), stream, part, rank);
  if (lost_ > 0) frame.insert(0, loss_frame());
  if (reserve(static_cast<int64_t>(frame.size()) + kept) && append(frame)) {
    lost_ = 0;
  } else if (!own_words) {
    lose(part.size());
  }
}

void LogWriter::lose(size_t bytes) {
  lost_ += bytes;
  lost_in_all_ += bytes;
}

void LogWriter::finish() {
  if (lost_ > 0) write_frame(job::LogStream::kNotice, "the log ends early\n", std::nullopt, 0);
  if (allocated_ > size_ && ::ftruncate(file_.get(), size_) == 0) allocated_ = size_;
}

/// Called before a frame is written at size_.
void LogWriter::mark() {
  if (quota_.bytes == 0) return;
  const auto step = static_cast<int64_t>(quota_.bytes / kMarksOfQuota);
  if (marks_.empty() || size_ - marks_.back() >= step) marks_.push_back(size_);
}

void LogWriter::keep_quota() {
  if (quota_.bytes == 0 || ended_) return;
  if (static_cast<uint64_t>(size_ - start_) > quota_.bytes) cut();
}

void LogWriter::cut() {
  const uint64_t left = quota_.bytes - quota_.bytes / kCutsOfQuota;
  const int64_t target = size_ - static_cast<int64_t>(left);
  const auto mark = std::lower_bound(marks_.begin(), marks_.end(), target);
  const int64_t start = mark == marks_.end() ? marks_.back() : *mark;
  if (start <= start_) return;
  // A hole after the end of the file frees nothing; it only tests whether the file system can do
  // it.
  constexpr int64_t kBlock = 4096;
  const int64_t behind = (size_ / kBlock + 2) * kBlock;
  if (!quota_.punch(file_.get(), behind, behind + kBlock)) return end_at_quota();
  // log.start is written first, then the hole is made (log_frame.h). If the disk has no room for
  // log.start, the cut is tried again later.
  const std::string text =
      encode(LogStart{.offset = static_cast<uint64_t>(start), .quota = quota_.bytes});
  if (!base::write_file(quota_.start, text)) return;
  start_ = start;
  marks_.erase(marks_.begin(), std::lower_bound(marks_.begin(), marks_.end(), start));
  // The hole begins at 0: an earlier cut may have left part of a block, or have failed.
  [[maybe_unused]] const bool punched = quota_.punch(file_.get(), 0, start);
}

void LogWriter::end_at_quota() {
  ended_ = true;
  notice("the log ends here at its limit of " + readable_bytes(quota_.bytes) +
         " (log_quota): its file system cannot remove the oldest part");
}

}  // namespace muster::engine

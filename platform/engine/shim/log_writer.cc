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

// A cut takes a small part of the quota off at once, so that it costs little and is done seldom;
// where it may begin is known four times as finely.
constexpr uint64_t kCutsOfQuota = 16;
constexpr uint64_t kMarksOfQuota = 64;

// Behind the end of a log: for its last words, which hold two short lines, and as much as is asked
// for at a time where there is room, so that few frames ask.
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

// A frame is there whole or not at all: what a full disk cut is taken back.
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

// What was read once must not be taken back, and the notice of a loss could be whole where the
// frame behind it is not: room is asked for before anything is written.
bool LogWriter::reserve(int64_t bytes) {
  if (size_ + bytes <= allocated_) return true;
  return allocate(bytes + kRoomAhead) || allocate(bytes);
}

/// Where the file system cannot tell in advance, it is tried.
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

// The loss is told together with what comes after it: alone, the short line would find room where
// no output does, over and over. `kept`: room that has to be left behind the frame.
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

/// A frame is about to begin at size_.
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
  const int64_t wanted = size_ - static_cast<int64_t>(left);
  const auto mark = std::lower_bound(marks_.begin(), marks_.end(), wanted);
  const int64_t start = mark == marks_.end() ? marks_.back() : *mark;
  if (start <= start_) return;
  // Behind the end there is nothing to give back: that tells only whether it can be done here.
  constexpr int64_t kBlock = 4096;
  const int64_t behind = (size_ / kBlock + 2) * kBlock;
  if (!quota_.punch(file_.get(), behind, behind + kBlock)) return end_at_quota();
  // First the word, then the deed: see log_frame.h. A full disk may take no word; later, then.
  const std::string text =
      encode(LogStart{.offset = static_cast<uint64_t>(start), .quota = quota_.bytes});
  if (!base::write_file(quota_.start, text)) return;
  start_ = start;
  marks_.erase(marks_.begin(), std::lower_bound(marks_.begin(), marks_.end(), start));
  // From the very beginning: what an earlier one left, half a block or all of it, goes as well.
  [[maybe_unused]] const bool punched = quota_.punch(file_.get(), 0, start);
}

void LogWriter::end_at_quota() {
  ended_ = true;
  notice("the log ends here: it may have " + readable_bytes(quota_.bytes) +
         " (log_quota), and its file system cannot take the oldest part away");
}

}  // namespace muster::engine

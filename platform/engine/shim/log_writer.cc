#include "engine/shim/log_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/files.h"
#include "engine/log_frame.h"

namespace muster::engine {

LogWriter::LogWriter(base::UniqueFd file, const base::Clock& clock)
    : file_(std::move(file)), clock_(clock), size_(::lseek(file_.get(), 0, SEEK_END)) {}

// A frame is there whole or not at all: what a full disk cut is taken back.
bool LogWriter::append(std::string_view frame) {
  if (base::write_all(file_.get(), frame)) {
    size_ += static_cast<int64_t>(frame.size());
    return true;
  }
  if (::ftruncate(file_.get(), size_) == 0) ::lseek(file_.get(), size_, SEEK_SET);
  return false;
}

std::string LogWriter::loss_frame() const {
  return encode_frame(
      clock_.now(), job::LogStream::kNotice,
      std::to_string(lost_) + " bytes of output are lost here: the disk under the log was full\n");
}

// What was read once must not be taken back, and the notice could be whole where the frame behind
// it is not. Where the file system cannot tell in advance, it is tried.
bool LogWriter::reserve(size_t bytes) {
  const auto length = static_cast<off_t>(bytes);
  if (::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, size_, length) == 0) return true;
  return errno != ENOSPC && errno != EDQUOT;
}

// The loss is told together with what comes after it: alone, the short line would find room where
// no output does, over and over.
void LogWriter::write(job::LogStream stream, std::string_view bytes, std::optional<int> rank) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kMaxFrame);
    bytes.remove_prefix(part.size());
    std::string frame = encode_frame(clock_.now(), stream, part, rank);
    if (lost_ > 0) frame.insert(0, loss_frame());
    if ((lost_ == 0 || reserve(frame.size())) && append(frame)) {
      lost_ = 0;
    } else if (stream != job::LogStream::kNotice) {
      lost_ += part.size();
    }
  }
}

}  // namespace muster::engine

#include "engine/shim/log_writer.h"

#include <unistd.h>

#include <algorithm>
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

bool LogWriter::report_loss() {
  const std::string text =
      std::to_string(lost_) + " bytes of output are lost here: the disk under the log was full\n";
  if (!append(encode_frame(clock_.now(), job::LogStream::kNotice, text))) return false;
  lost_ = 0;
  return true;
}

void LogWriter::write(job::LogStream stream, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kMaxFrame);
    bytes.remove_prefix(part.size());
    const bool kept =
        (lost_ == 0 || report_loss()) && append(encode_frame(clock_.now(), stream, part));
    if (!kept) lost_ += part.size();
  }
}

}  // namespace muster::engine

#include "engine/shim/exit_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/files.h"

namespace muster::engine {

namespace {

/// For the longest record.
constexpr size_t kRoom = 4096;

}  // namespace

base::Result<void> ExitFile::reserve(const std::filesystem::path& path) {
  file_ = base::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file_) return base::system_error("cannot open the exit record", errno);
  return base::write_all(file_.get(), std::string(kRoom, ' '));
}

void ExitFile::write(ExitRecord record) const {
  std::string text = encode(record);
  if (text.size() > kRoom) {
    record.status.error.clear();
    text = encode(record);
  }
  text.resize(std::max(text.size(), kRoom), ' ');
  [[maybe_unused]] const ssize_t written = ::pwrite(file_.get(), text.data(), text.size(), 0);
}

}  // namespace muster::engine

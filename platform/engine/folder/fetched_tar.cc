#include "engine/folder/fetched_tar.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "workspace/copy_report.h"
#include "workspace/small_archive.h"
#include "workspace/tar_pack.h"
#include "workspace/tar_unpack.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

constexpr size_t kFetchPiece = 256 << 10;
constexpr size_t kTarBlock = 512;

/// A file without a name on the disk of `folder`.
Result<UniqueFd> nameless_file(const fs::path& folder) {
  std::string path = (folder / ".fetched-XXXXXX").string();
  UniqueFd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) return base::system_error("cannot make a file in '" + folder.string() + "'", errno);
  ::unlink(path.c_str());
  return file;
}

/// For the content of a folder, Docker first sends the folder itself as "."; Podman sends only its
/// entries.
std::string root_of_tar() {
  std::string tar = workspace::make_archive(
      {{.path = ".", .content = {}, .mode = 0700, .is_folder = true, .link = {}}});
  tar.resize((tar.find_last_not_of('\0') / kTarBlock + 1) * kTarBlock);  // drops the end
  return tar;
}

}  // namespace

Result<FetchedTar> FetchedTar::open(const fs::path& folder, int64_t most) {
  MUSTER_TRY(UniqueFd file, nameless_file(folder));
  return FetchedTar(std::move(file), most);
}

Result<void> FetchedTar::take(std::string_view piece) {
  size_ += static_cast<int64_t>(piece.size());
  if (most_ > 0 && size_ > most_) {
    return Error{.code = ErrorCode::kRefused, .what = "the content exceeds the limit"};
  }
  return base::write_all(file_.get(), piece);
}

Result<void> FetchedTar::unpack_into(const fs::path& folder) {
  if (::lseek(file_.get(), 0, SEEK_SET) < 0) return base::system_error("cannot read back", errno);
  std::string buffer(kFetchPiece, '\0');
  const std::string root = root_of_tar();
  bool begun = false;
  const auto read = [&]() -> Result<std::string_view> {
    if (!std::exchange(begun, true)) return std::string_view(root);
    const ssize_t count = ::read(file_.get(), buffer.data(), buffer.size());
    if (count < 0) return base::system_error("cannot read the fetched content", errno);
    return std::string_view(buffer).substr(0, static_cast<size_t>(count));
  };
  const auto unpacked =
      workspace::unpack_tar(read, {.target = folder.string(), .name = workspace::copied_name("/.")},
                            {.on_note = [](const workspace::CopyNote& note) {
                              base::log_info("content that is fetched from a task: " + note.text);
                            }});
  if (!unpacked) return unpacked.error();
  return {};
}

}  // namespace muster::engine

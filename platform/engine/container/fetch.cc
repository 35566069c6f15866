#include "engine/container/fetch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/unique_fd.h"
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

constexpr size_t kPiece = 256 << 10;
constexpr size_t kTarBlock = 512;

/// A file without a name on the disk of `folder`.
Result<UniqueFd> nameless_file(const fs::path& folder) {
  std::string path = (folder / ".fetched-XXXXXX").string();
  UniqueFd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) return base::system_error("cannot make a file in '" + folder.string() + "'", errno);
  ::unlink(path.c_str());
  return file;
}

/// Of a folder's content Docker sends the folder itself first, as ".", and Podman only what is in
/// it.
std::string root_of_tar() {
  std::string tar = workspace::make_archive(
      {{.path = ".", .content = {}, .mode = 0700, .is_folder = true, .link = {}}});
  tar.resize((tar.find_last_not_of('\0') / kTarBlock + 1) * kTarBlock);  // without its end
  return tar;
}

Result<void> unpack_into(const UniqueFd& file, const fs::path& folder) {
  if (::lseek(file.get(), 0, SEEK_SET) < 0) return base::system_error("cannot read back", errno);
  std::string buffer(kPiece, '\0');
  const std::string root = root_of_tar();
  bool begun = false;
  const auto read = [&]() -> Result<std::string_view> {
    if (!std::exchange(begun, true)) return std::string_view(root);
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0) return base::system_error("cannot read what was fetched", errno);
    return std::string_view(buffer).substr(0, static_cast<size_t>(count));
  };
  const auto unpacked =
      workspace::unpack_tar(read, {.target = folder.string(), .name = workspace::copied_name("/.")},
                            {.on_note = [](const workspace::CopyNote& note) {
                              base::log_info("what is fetched from a task: " + note.text);
                            }});
  if (!unpacked) return unpacked.error();
  return {};
}

}  // namespace

struct Fetch::Transfer {
  UniqueFd file;
  fs::path folder;
  int64_t left = 0;
  Done done;
  Result<void> outcome;
  std::shared_ptr<void> under_way;

  void take(std::string_view piece) {
    if (!outcome) return;
    left -= static_cast<int64_t>(piece.size());
    outcome = left < 0 ? Result<void>(Error{.code = ErrorCode::kExhausted,
                                            .what = "there is more than may be fetched"})
                       : base::write_all(file.get(), piece);
  }
};

Fetch::Fetch(base::EventLoop& loop) : unpacking_(loop) {}

void Fetch::content(DockerClient& client, const std::string& container, const std::string& path,
                    const fs::path& folder, int64_t most, Done done) {
  auto transfer = std::make_shared<Transfer>();
  transfer->folder = folder;
  transfer->left = most;
  transfer->done = std::move(done);
  auto file = nameless_file(folder);
  transfers_.insert(transfer);
  if (!file) {
    transfer->outcome = std::move(file).error();
    return unpack(transfer);
  }
  transfer->file = *std::move(file);
  // "." behind it: what is in the folder, and not the folder.
  transfer->under_way = client.get_archive(
      container, path + "/.",
      [weak = std::weak_ptr(transfer)](std::string_view piece) {
        if (const auto still = weak.lock()) still->take(piece);
      },
      [this, weak = std::weak_ptr(transfer)](Result<void> ended) {
        const auto still = weak.lock();
        if (!still) return;
        if (still->outcome && !ended) still->outcome = std::move(ended).error();
        unpack(still);
      });
}

void Fetch::unpack(const std::shared_ptr<Transfer>& transfer) {
  unpacking_.run(
      [transfer] {
        if (transfer->outcome) transfer->outcome = unpack_into(transfer->file, transfer->folder);
      },
      [this, transfer] {
        transfers_.erase(transfer);
        transfer->under_way.reset();
        transfer->done(transfer->outcome);
      });
}

}  // namespace muster::engine

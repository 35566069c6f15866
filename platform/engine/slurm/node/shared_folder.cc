#include "engine/slurm/node/shared_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/files.h"

namespace muster::engine::slurm {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

Result<void> look(const NodeBrief& brief) {
  constexpr size_t kLongestMark = 256;
  const fs::path folder(brief.folder);
  MUSTER_TRY(std::string mark, base::read_file(folder / brief.mark, kLongestMark));
  if (mark.ends_with('\n')) mark.pop_back();
  if (mark != brief.nonce) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "the folder '" + brief.folder + "' is another server's"};
  }
  // Not access(): a file system that maps users answers it one way, and does another.
  std::string probe = (folder / ".muster-node-XXXXXX").string();
  const base::UniqueFd file(::mkostemp(probe.data(), O_CLOEXEC));
  if (!file) return base::system_error("cannot write in '" + brief.folder + "'", errno);
  ::unlink(probe.c_str());
  return {};
}

}  // namespace

Result<bool> shares_folder(const NodeBrief& brief) {
  if (brief.sharing == Sharing::kNo || brief.folder.empty() || brief.mark.empty()) return false;
  auto seen = look(brief);
  if (seen) return true;
  if (brief.sharing == Sharing::kAuto) return false;
  Error error = std::move(seen).error();
  error.what = "this node does not share the server's folder: " + error.what;
  error.advice =
      "mount it here at the same path, or let the server send what tasks need "
      "(--slurm-shared no)";
  return error;
}

}  // namespace muster::engine::slurm

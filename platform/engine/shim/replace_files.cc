#include "engine/shim/replace_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/files.h"
#include "base/random.h"
#include "base/unique_fd.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Error cannot_write(const std::string& path, int number) {
  Error error = base::system_error("cannot write '" + path + "'", number);
  if (number == EISDIR || number == ENOTEMPTY) error.code = ErrorCode::kConflict;
  return error;
}

/// Made where it is missing, or where something else has its name.
Result<UniqueFd> enter(const UniqueFd& above, const std::string& name, const std::string& path) {
  UniqueFd folder(::openat(above.get(), name.c_str(), kFolder));
  if (folder) return folder;
  if (errno == ENOTDIR || errno == ELOOP) {
    ::unlinkat(above.get(), name.c_str(), 0);
  } else if (errno != ENOENT) {
    return cannot_write(path, errno);
  }
  if (::mkdirat(above.get(), name.c_str(), 0700) != 0) return cannot_write(path, errno);
  folder.reset(::openat(above.get(), name.c_str(), kFolder));
  if (!folder) return cannot_write(path, errno);
  return folder;
}

/// A new file beside the one that it will replace, under a name that nobody can guess.
Result<void> write_beside(const UniqueFd& folder, const std::string& name,
                          const launch::PlannedFile& file) {
  const UniqueFd beside(::openat(folder.get(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!beside) return cannot_write(file.path, errno);
  MUSTER_CHECK(base::write_all(beside.get(), file.content));
  // The umask may have taken bits away that are wanted.
  if (::fchmod(beside.get(), file.mode) != 0) return cannot_write(file.path, errno);
  return {};
}

Result<void> replace(const UniqueFd& generated, const launch::PlannedFile& file) {
  const fs::path path(file.path);
  UniqueFd folder(::fcntl(generated.get(), F_DUPFD_CLOEXEC, 0));
  if (!folder) return cannot_write(file.path, errno);
  for (const fs::path& name : path.parent_path()) {
    MUSTER_TRY(UniqueFd below, enter(folder, name.string(), file.path));
    folder = std::move(below);
  }
  base::SystemRandom random;
  const std::string beside = ".muster-" + base::random_name(random, 16);
  auto replaced = write_beside(folder, beside, file);
  const std::string name = path.filename().string();
  if (replaced && ::renameat(folder.get(), beside.c_str(), folder.get(), name.c_str()) != 0) {
    replaced = cannot_write(file.path, errno);
  }
  if (!replaced) ::unlinkat(folder.get(), beside.c_str(), 0);
  return replaced;
}

bool stays_within(const fs::path& path) {
  return path.is_relative() && path.has_filename() &&
         std::none_of(path.begin(), path.end(),
                      [](const fs::path& name) { return name == ".." || name == "."; });
}

}  // namespace

Result<void> replace_files(const fs::path& generated,
                           const std::vector<launch::PlannedFile>& files) {
  const UniqueFd folder(::open(generated.c_str(), kFolder));
  if (!folder) return base::system_error("cannot open '" + generated.string() + "'", errno);
  for (const launch::PlannedFile& file : files) {
    if (!stays_within(file.path)) {
      return Error{.code = ErrorCode::kInvalid,
                   .what = "'" + file.path + "' is no path in the generated folder"};
    }
    MUSTER_CHECK(replace(folder, file));
  }
  return {};
}

}  // namespace muster::engine

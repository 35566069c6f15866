#include "cli/contexts_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "base/text.h"

namespace muster::cli {

namespace fs = std::filesystem;

namespace {

using base::Error;
using base::ErrorCode;

constexpr const char* kContextsFile = "contexts.json";
constexpr const char* kLock = "contexts.lock";
constexpr size_t kMostContextsBytes = 4 << 20;

enum class There { kNo, kYes };

/// root may read the file of whoever it acts for, but would make it its own by writing.
Result<There> look_at(const fs::path& path, bool to_change) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    const bool is_none = errno == ENOENT || errno == ENOTDIR || (errno == EACCES && !to_change);
    if (is_none) return There::kNo;
    return base::system_error("cannot look at '" + path.string() + "'", errno);
  }
  const bool is_own = status.st_uid == ::geteuid();
  if (!is_own && (to_change || ::geteuid() != 0)) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "'" + path.string() + "' belongs to another user",
                 .advice = "XDG_CONFIG_HOME chooses another folder"};
  }
  constexpr mode_t kOthers = 077;
  if ((status.st_mode & kOthers) != 0) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "'" + path.string() + "' holds your tokens, and others may read it",
                 .advice = "chmod 600 " + base::shell_quoted(path.string()) +
                           "; where somebody may have read it, log in anew: muster logout, "
                           "muster login"};
  }
  return There::kYes;
}

Result<Contexts> read_contexts_file(const fs::path& path, bool to_change) {
  MUSTER_TRY(const There there, look_at(path, to_change));
  if (there == There::kNo) return Contexts{};
  auto text = base::read_file(path, kMostContextsBytes);
  auto contexts = text ? contexts_from_json(*text) : Result<Contexts>(text.error());
  if (contexts) return contexts;
  return Error{.code = ErrorCode::kInvalid,
               .what = "'" + path.string() + "' is damaged: " + contexts.error().what,
               .advice = "mend it, or move it away and log in again: muster login https://HOST"};
}

}  // namespace

Result<Contexts> read_contexts(const fs::path& folder) {
  if (folder.empty()) return Contexts{};
  return read_contexts_file(folder / kContextsFile, false);
}

Result<void> change_contexts(const fs::path& folder,
                             const std::function<Result<void>(Contexts&)>& change) {
  if (folder.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "there is no home folder to keep contexts in",
                 .advice = "set XDG_CONFIG_HOME, or MUSTER_SERVER and MUSTER_TOKEN instead"};
  }
  MUSTER_CHECK(base::make_private_folder(folder));
  MUSTER_TRY(const base::UniqueFd lock, base::await_lock(folder / kLock));
  MUSTER_TRY(Contexts contexts, read_contexts_file(folder / kContextsFile, true));
  MUSTER_CHECK(change(contexts));
  return base::write_file(folder / kContextsFile, contexts_to_json(contexts));
}

Result<void> forget_context(const fs::path& folder, const std::string& name) {
  return change_contexts(folder, [&](Contexts& contexts) -> Result<void> {
    MUSTER_TRY(const Context context, context_of(contexts, name));
    if (context.is_local()) {
      return Error{.code = ErrorCode::kInvalid, .what = "the local context is always there"};
    }
    std::erase_if(contexts.known, [&](const Context& each) { return each.name == name; });
    if (contexts.in_use == name) contexts.in_use = kLocalContext;
    return {};
  });
}

}  // namespace muster::cli

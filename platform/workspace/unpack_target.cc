#include "workspace/unpack_target.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "workspace/path_text.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

class TargetRules {
 public:
  explicit TargetRules(const std::string& target)
      : target_(target), plain_(without_slashes(target)) {}

  Result<RootPlace> place(const std::string& name, bool is_folder) const {
    struct stat status{};
    const bool there = ::stat(target_.c_str(), &status) == 0;
    if (there && S_ISDIR(status.st_mode)) return in_folder(target_, name);
    if (!there && errno != ENOENT) return cannot_use(errno);
    if (there && is_folder) {
      return Error{.code = ErrorCode::kConflict,
                   .what = shown(target_) + " is no folder, and a folder is to be copied there",
                   .advice = "name a folder, or what is not there yet"};
    }
    return as_new(is_folder);
  }

 private:
  Result<RootPlace> as_new(bool is_folder) const {
    const std::string last = plain_.substr(plain_.rfind('/') + 1);
    const bool wants_folder = target_ != plain_ && !is_folder;
    if (last.empty() || last == "." || last == ".." || wants_folder) {
      return Error{.code = ErrorCode::kNotFound,
                   .what = "there is no folder " + shown(target_),
                   .advice = "make it first, or name another"};
    }
    const size_t slash = plain_.rfind('/');
    MUSTER_TRY(RootPlace place,
               in_folder(slash == std::string::npos ? "." : plain_.substr(0, slash + 1), last));
    place.is_target = true;
    return place;
  }

  Result<RootPlace> in_folder(const std::string& folder, const std::string& name) const {
    UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd) return RootPlace{.folder = std::move(fd), .name = name};
    if (errno != ENOENT) return cannot_use(errno);
    return Error{.code = ErrorCode::kNotFound,
                 .what = "there is no folder " + shown(folder),
                 .advice = "make it first, or name another"};
  }

  Error cannot_use(int number) const {
    Error error = base::system_error("cannot copy to " + shown(target_), number);
    if (number == ENOTDIR) error.code = ErrorCode::kConflict;
    return error;
  }

  std::string target_;
  std::string plain_;
};

}  // namespace

std::string_view without_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

Result<RootPlace> find_root_place(const std::string& target, const std::string& name,
                                  bool is_folder) {
  return TargetRules(target).place(name, is_folder);
}

}  // namespace muster::workspace

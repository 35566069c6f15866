// A file that appears under its name once it is whole, in the place of what was there. Until then
// it has no name where the file system can do that (O_TMPFILE), so that nothing of it is left
// whatever ends this process; else one of its own, which goes with this object.
//
// I/O; one owner.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"

namespace muster::workspace {

class NewFile {
 public:
  /// In the folder `parent`. Nothing, with errno, where none can be made.
  static std::optional<NewFile> open(int parent);
  NewFile(NewFile&& other) noexcept
      : parent_(std::move(other.parent_)),
        file_(std::move(other.file_)),
        own_name_(std::exchange(other.own_name_, {})) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  int fd() const { return file_.get(); }
  /// False with errno.
  bool publish(const std::string& name);

 private:
  NewFile() = default;

  base::UniqueFd parent_;
  base::UniqueFd file_;
  std::string own_name_;  ///< empty: it has none
};

/// A name for what is to be renamed in a moment.
std::string passing_name();

}  // namespace muster::workspace

#include "workspace/own_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/files.h"

namespace muster::workspace {

Result<Fetched> own_folder() {
  const char* const chosen = std::getenv("TMPDIR");
  const std::filesystem::path parent = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  // Without links: what is unpacked there must not pass through any.
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(parent, failed);
  if (failed) {
    return base::system_error(
        "cannot use the folder for temporary files, '" + parent.string() + "'", failed.value());
  }
  std::string name = (real / "muster-workspace-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return base::system_error("cannot make a folder in '" + real.string() + "'", errno);
  }
  Fetched fetched;
  fetched.own = name;
  fetched.folder = fetched.own / "files";
  if (!std::filesystem::create_directory(fetched.folder, failed)) {
    return base::system_error("cannot make '" + fetched.folder.string() + "'", failed.value());
  }
  return fetched;
}

Fetched::Fetched(Fetched&& other) noexcept
    : folder(std::exchange(other.folder, {})),
      commit(std::exchange(other.commit, {})),
      note(std::exchange(other.note, {})),
      own(std::exchange(other.own, {})) {}

Fetched& Fetched::operator=(Fetched&& other) noexcept {
  std::swap(folder, other.folder);
  std::swap(commit, other.commit);
  std::swap(note, other.note);
  std::swap(own, other.own);
  return *this;
}

Fetched::~Fetched() {
  if (!own.empty()) static_cast<void>(base::remove_tree(own));
}

}  // namespace muster::workspace

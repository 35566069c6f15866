#include "service/project_files.h"

#include <system_error>

#include "base/files.h"

namespace muster::service {

namespace fs = std::filesystem;

base::Result<void> set_storage_aside(const fs::path& storage, const std::string& project,
                                     base::Time now) {
  std::error_code error;
  if (!fs::exists(storage / project, error)) return {};
  const fs::path aside = storage / ".removed";
  MUSTER_CHECK(base::make_private_folder(aside));
  // Nanoseconds: a project may come and go several times a second.
  const std::string name = project + "-" + std::to_string(now.time_since_epoch().count());
  fs::rename(storage / project, aside / name, error);
  if (!error) return {};
  return base::system_error("cannot set the storage of project '" + project + "' aside",
                            error.value());
}

}  // namespace muster::service

#include "workspace/sources.h"

#include <array>
#include <system_error>

#include "base/text.h"
#include "workspace/archive_source.h"
#include "workspace/git_source.h"
#include "workspace/own_folder.h"
#include "workspace/repository_url.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;

namespace fs = std::filesystem;

namespace {

bool has_archive_name(const std::string& where) {
  constexpr std::array<std::string_view, 4> kEndings{".zip", ".tar", ".tar.gz", ".tgz"};
  const std::string name = base::lower_case(where);
  for (const std::string_view ending : kEndings) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

Result<SourceKind> kind_of_path(const Source& source, const fs::path& path) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const bool is_archive = !is_folder && has_archive_name(source.where);
  if (!is_archive && fs::is_regular_file(path, ignored)) {
    return invalid_source("'" + source.where + "' is neither a folder nor an archive",
                          "give the folder that it is in, or a .zip, .tar or .tar.gz");
  }
  if (!source.ref.empty()) {
    return invalid_source(
        "'" + source.where + "' is not a repository: it has no '" + source.ref + "'",
        "leave " + source.flags.ref + " out, or give file://" + path.string() +
            " where that is a git repository");
  }
  return is_archive ? SourceKind::kArchive : SourceKind::kFolder;
}

Error no_such(const std::string& kind, const Source& source, const fs::path& path) {
  return {.code = ErrorCode::kNotFound,
          .what = "there is no " + kind + " '" + source.where + "'",
          .advice = path == source.where ? "check the path, or give the URL of a repository"
                                         : "that is " + path.string() +
                                               "; check the path, or give the URL of a repository"};
}

Result<Fetched> fetch_folder(const Source& source, const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return no_such("folder", source, path);
  Fetched fetched;
  fetched.folder = path;
  return fetched;
}

Result<Fetched> fetch_archive(const Source& source, const fs::path& path, int64_t most_bytes) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return no_such("archive", source, path);
  MUSTER_TRY(Fetched fetched, own_folder());
  MUSTER_CHECK(unpack_archive(path, fetched.folder, most_bytes));
  return fetched;
}

}  // namespace

Result<SourceKind> kind_of(const Source& source, const fs::path& current_folder) {
  if (source.where.empty()) {
    return invalid_source("the workspace is empty",
                          "give a folder, a .zip, or the URL of a repository");
  }
  if (source.where.starts_with('-')) {
    return invalid_source(
        "'" + source.where + "' is an option, not a workspace",
        "give a folder, a .zip, or the URL of a repository; a folder of that name is "
        "written ./" +
            source.where);
  }
  std::error_code ignored;
  const fs::path path = current_folder / source.where;
  if (!is_address(source.where) || fs::exists(path, ignored)) return kind_of_path(source, path);
  MUSTER_CHECK(check_repository(source));
  return SourceKind::kRepository;
}

Result<Fetched> fetch(const Source& source, const fs::path& current_folder, int64_t most_bytes,
                      const std::function<void(std::string_view)>& on_progress) {
  MUSTER_TRY(const SourceKind kind, kind_of(source, current_folder));
  switch (kind) {
    case SourceKind::kFolder:
      return fetch_folder(source, current_folder / source.where);
    case SourceKind::kArchive:
      return fetch_archive(source, current_folder / source.where, most_bytes);
    case SourceKind::kRepository:
      return fetch_repository(source, on_progress);
  }
  return invalid_source("no such kind of workspace", "");
}

}  // namespace muster::workspace

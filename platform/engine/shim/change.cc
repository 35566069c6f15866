#include "engine/shim/change.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>

#include "base/files.h"
#include "base/json_text.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "engine/shim/modes.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;
using launch::PlannedFile;
using nlohmann::json;

// --- one file after another

namespace {

// Each folder is opened relative to the one above, and links are refused: the task may replace any
// of them by a link at any moment.
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Error cannot_write(const std::string& path, int number) {
  Error error = base::system_error("cannot write '" + path + "'", number);
  if (number == EISDIR || number == ENOTEMPTY) error.code = ErrorCode::kConflict;
  return error;
}

/// To the account of the task, where it has one of its own.
bool give_to_owner_of(const UniqueFd& folder, const UniqueFd& made) {
  struct stat owner{};
  if (::fstat(folder.get(), &owner) != 0) return false;
  return owner.st_uid == ::geteuid() || ::fchown(made.get(), owner.st_uid, owner.st_gid) == 0;
}

/// Opens a subfolder. Makes it if it is missing, and replaces an entry that is not a folder.
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
  if (!folder || !give_to_owner_of(above, folder)) return cannot_write(path, errno);
  return folder;
}

/// Writes a new file next to the file that it will replace, under a random name: the task could put
/// a trap under a name that it can guess.
Result<void> write_beside(const UniqueFd& folder, const std::string& name,
                          const launch::PlannedFile& file) {
  const UniqueFd beside(::openat(folder.get(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!beside) return cannot_write(file.path, errno);
  MUSTER_CHECK(base::write_all(beside.get(), file.content));
  if (!give_to_owner_of(folder, beside)) return cannot_write(file.path, errno);
  // The umask may have cleared bits of the mode.
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
                   .what = "'" + file.path + "' is not a path in the generated folder"};
    }
    MUSTER_CHECK(replace(folder, file));
  }
  return {};
}

// --- all files of one change

namespace {

using Files = std::vector<PlannedFile>;

json::binary_t change_bytes(const std::string& text) {
  return json::binary_t({text.begin(), text.end()});
}

std::string string_from_binary(const json& value) {
  const json::binary_t& bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

/// Adds the copies for the task's MPI: a hostfile exists in the format of each MPI, and the MPI
/// reads the copy.
void take_contents(const std::map<std::string, std::string>& taken_from, Files& files) {
  const Files given = files;
  for (PlannedFile& file : files) {
    const auto other = taken_from.find(file.path);
    if (other == taken_from.end()) continue;
    const auto source = std::find_if(given.begin(), given.end(), [&](const PlannedFile& each) {
      return each.path == other->second;
    });
    if (source != given.end()) file.content = source->content;
  }
}

Result<void> change_what_is_asked(const TaskFolder& folder) {
  MUSTER_TRY(const std::string asked, base::read_file("/dev/stdin"));
  MUSTER_TRY(Files files, decode_files(asked));
  return change_files(folder, std::move(files));
}

}  // namespace

std::string encode(const Files& files) {
  json list = json::array();
  for (const PlannedFile& file : files) {
    list.push_back({{"path", change_bytes(file.path)},
                    {"content", change_bytes(file.content)},
                    {"mode", file.mode}});
  }
  return base::cbor_text(list);
}

Result<Files> decode_files(std::string_view text) {
  try {
    Files files;
    const json list = base::parse_cbor_or_throw(text);
    for (const json& file : list.get_ref<const json::array_t&>()) {
      files.push_back({.path = string_from_binary(file.at("path")),
                       .content = string_from_binary(file.at("content")),
                       .mode = file.at("mode").get<mode_t>()});
    }
    return files;
  } catch (const json::exception& error) {
    return Error{.code = ErrorCode::kInternal,
                 .what = std::string("cannot read which files change: ") + error.what()};
  }
}

Result<void> change_files(const TaskFolder& folder, Files files) {
  MUSTER_TRY(const std::string text, base::read_file(folder.plan()));
  MUSTER_TRY(const ShimPlan plan, decode_shim_plan(text));
  take_contents(plan.inner.taken_from, files);
  return replace_files(plan.generated.empty() ? folder.generated().string() : plan.generated,
                       files);
}

int run_change(const char* task_folder) {
  const auto changed = change_what_is_asked({task_folder});
  if (changed) return 0;
  [[maybe_unused]] const auto written =
      base::write_all(STDERR_FILENO, refusal_text(changed.error()));
  return 1;
}

}  // namespace muster::engine

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/files/files.h"
#include "workspace/beneath.h"
#include "workspace/left_files.h"
#include "workspace/manifest.h"
#include "workspace/path_text.h"

namespace muster::cli::files {

namespace {

using api::Artifact;
using base::Error;
using base::ErrorCode;

/// Whether `artifact` is `path` or lies in that folder.
bool is_below(const Artifact& artifact, const std::string& path) {
  const std::string folder = path.ends_with('/') ? path : path + "/";
  return artifact.path == path || artifact.path.starts_with(folder);
}

Result<std::vector<Artifact>> selected_artifacts(Connection& connection,
                                                 const ArtifactGetCommand& command) {
  std::vector<Artifact> all;
  const std::vector<std::string> prefixes =
      command.paths.empty() ? std::vector<std::string>{""} : command.paths;
  for (const std::string& prefix : prefixes) {
    MUSTER_TRY(api::ArtifactPage page,
               all_artifacts(connection, command.name, {.checksums = true, .prefix = prefix}));
    if (page.truncated) return unlistable_artifacts(command.name);
    if (!prefix.empty()) {
      std::erase_if(page.artifacts, [&](const Artifact& each) { return !is_below(each, prefix); });
    }
    if (page.artifacts.empty() && !prefix.empty()) {
      return Error{.code = ErrorCode::kNotFound,
                   .what = "job '" + command.name + "' has no artifact " + workspace::shown(prefix),
                   .advice = "muster artifacts list " + command.name + " lists them",
                   .detail = std::make_shared<const NoSuchArtifact>(prefix)};
    }
    std::move(page.artifacts.begin(), page.artifacts.end(), std::back_inserter(all));
  }
  std::sort(all.begin(), all.end(),
            [](const Artifact& one, const Artifact& other) { return one.path < other.path; });
  const auto same = [](const Artifact& one, const Artifact& other) {
    return one.path == other.path;
  };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

class Fetching {
 public:
  Fetching(Connection& connection, const ArtifactGetCommand& command, const std::string& program)
      : connection_(connection), command_(command), program_(program) {}

  Result<FetchedArtifacts> run() {
    progress_.show("checking", std::string_view("what there is"));
    MUSTER_TRY(const std::vector<Artifact> all, selected_artifacts(connection_, command_));
    MUSTER_TRY(ReceivedFiles files, ReceivedFiles::open(command_.folder));
    // The sizes of sparse files can add up to more than 64 bits.
    constexpr int64_t kMost = int64_t{1} << 60;
    for (const Artifact& artifact : all)
      all_bytes_ = std::min(kMost, all_bytes_ + std::min(kMost, artifact.bytes));
    for (const Artifact& artifact : all) {
      const auto fetched = take(files, artifact);
      if (fetched) continue;
      ++totals_.failed;
      report(error_text(fetched.error(), program_));
    }
    progress_.clear();
    return totals_;
  }

 private:
  void report(const std::string& text) {
    progress_.clear();
    std::cerr << safe_lines(text) << std::flush;
  }

  Result<void> take(ReceivedFiles& files, const Artifact& artifact) {
    if (artifact.kind != Artifact::Kind::kFile) {
      const auto& named = command_.paths;
      const bool is_named = std::find(named.begin(), named.end(), artifact.path) != named.end();
      ++(is_named ? totals_.failed : totals_.left_out);
      report(program_ + (is_named ? ": cannot fetch " : ": left out: ") +
             workspace::shown(artifact.path) + (is_named ? ": it is a " : " is a ") +
             std::string(api::to_string(artifact.kind)) + "\n");
      return {};
    }
    const ExpectedFile expected{.path = artifact.path,
                                .bytes = artifact.bytes,
                                .modified = artifact.modified,
                                .sha256 = artifact.sha256};
    if (files.has(expected)) {
      ++totals_.here_already;
      done_bytes_ += artifact.bytes;
      return {};
    }
    MUSTER_TRY(ReceivedFile file, files.receive(expected));
    MUSTER_CHECK(fetch(file, artifact));
    MUSTER_CHECK(file.keep());
    ++totals_.files;
    totals_.bytes += file.bytes();
    done_bytes_ += file.bytes();
    if (artifact.sha256.empty()) {
      report(program_ + ": " + workspace::shown(artifact.path) +
             " is still being written: got its first " + std::to_string(file.bytes()) +
             " bytes, unchecked\n");
    }
    return {};
  }

  /// Downloads a file. Continues after interruptions, as long as each attempt yields data.
  Result<void> fetch(ReceivedFile& file, const Artifact& artifact) {
    while (true) {
      const bool is_whole = !artifact.sha256.empty() && file.bytes() == artifact.bytes;
      if (is_whole) return {};
      auto fetched = fetch_rest(file, artifact);
      if (fetched || fetched.error().code != ErrorCode::kUnavailable) return fetched;
      // Without a checksum, the file may have changed in between.
      if (artifact.sha256.empty()) MUSTER_CHECK(file.begin_anew());
      MUSTER_CHECK(connection_.come_back());
    }
  }

  Result<void> fetch_rest(ReceivedFile& file, const Artifact& artifact) {
    Result<void> written;
    const auto take_bytes = [&](std::string_view bytes) {
      written = file.put(bytes);
      connection_.is_well();
      progress_.show("fetching", done_bytes_ + file.bytes(), std::max(all_bytes_, done_bytes_));
      return static_cast<bool>(written);
    };
    const auto fetched = connection_.client().artifact(
        command_.name, {.path = artifact.path, .from = file.bytes(), .sha256 = artifact.sha256},
        take_bytes);
    return written ? fetched : written;
  }

  Connection& connection_;
  const ArtifactGetCommand& command_;
  const std::string& program_;
  ProgressBar progress_;
  FetchedArtifacts totals_;
  int64_t all_bytes_ = 0;
  int64_t done_bytes_ = 0;
};

}  // namespace

Result<api::ArtifactPage> all_artifacts(Connection& connection, const std::string& job,
                                        const api::ArtifactQuery& query) {
  api::ArtifactPage all;
  api::ArtifactQuery next = query;
  while (true) {
    MUSTER_TRY(api::ArtifactPage page,
               connection.call([&](api::Client& client) { return client.artifacts(job, next); }));
    all.truncated = page.truncated;
    if (page.artifacts.empty()) return all;
    next.after = page.artifacts.back().path;
    std::move(page.artifacts.begin(), page.artifacts.end(), std::back_inserter(all.artifacts));
    if (!all.truncated) return all;
  }
}

Error unlistable_artifacts(const std::string& job) {
  return {
      .code = ErrorCode::kExhausted,
      .what = "a folder of job '" + job + "' has more than 1,000,000 entries and cannot be listed",
      .advice = "name the files to fetch, or let the job pack them into one file"};
}

Result<FetchedArtifacts> fetch_artifacts(Connection& connection, const ArtifactGetCommand& command,
                                         const std::string& program) {
  return Fetching(connection, command, program).run();
}

std::string readable_path(const std::string& path) {
  const std::string quoted = workspace::shown(path);
  return quoted == "'" + path + "'" ? path : quoted;
}

namespace {

Call read_artifact_list(Reading& in) {
  return ArtifactListCommand{.name = in.name("job"),
                             .project = in.project_of_job(),
                             .checksums = in.reader.has("--checksums"),
                             .output = in.output()};
}

Call read_artifact_get(Reading& in) {
  ArtifactGetCommand command{
      .name = in.name("job"), .project = in.project_of_job(), .paths = {}, .folder = {}};
  const std::vector<std::string>& words = in.arguments.names;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].empty()) in.reader.fault("", "a file name is empty");
    command.paths.push_back(words[i]);
  }
  if (in.reader.has("--to")) {
    const std::string folder = in.reader.text("--to");
    if (folder.empty()) in.reader.fault("--to", "names no folder");
    command.folder = folder;
  } else if (!command.name.empty()) {
    command.folder = command.name + "-artifacts";
  }
  return command;
}

}  // namespace

Command artifacts_command() {
  Command list{
      .name = "list",
      .alias = "ls",
      .help = "list a job's artifacts, while it runs or after its end",
      .read = read_artifact_list,
      .positionals = one_of(Offer::kJobs),
      .flags = Flags{{.name = "--checksums", .help = "include the SHA-256 checksum of each file"}} +
               job_project_flag() + output_flag(),
      .example = "muster artifacts list dist --checksums"};
  Command get{
      .name = "get",
      .help =
          "download a job's artifacts, or some of them; files that are already here are skipped",
      .read = read_artifact_get,
      .positionals = {.name = "NAME [PATH...]",
                      .least = 1,
                      .most = kAnyNumber,
                      .choices = {},
                      .offer = Offer::kJobs},
      .flags = Flags{{.name = "--to",
                      .value = "FOLDER",
                      .help = "destination folder (default: NAME-artifacts)",
                      .offer = Offer::kFolders}} +
               job_project_flag(),
      .example = "muster artifacts get dist model.pt --to ."};
  return {.name = "artifacts",
          .help = "files that jobs leave in their artifact folders: list, get",
          .commands = {std::move(list), std::move(get)}};
}

namespace {

std::string artifact_table(const api::ArtifactPage& page, bool checksums) {
  std::vector<Column> columns{{"PATH"}, {"SIZE", true}, {"MODIFIED"}};
  if (checksums) columns.push_back({"SHA256"});
  Table table(std::move(columns));
  for (const Artifact& each : page.artifacts) {
    const bool is_file = each.kind == Artifact::Kind::kFile;
    std::vector<std::string> row{
        readable_path(each.path),
        is_file ? workspace::size_text(each.bytes) : std::string(api::to_string(each.kind)),
        base::to_rfc3339(each.modified, 0)};
    if (checksums) row.push_back(is_file && each.sha256.empty() ? "changing" : each.sha256);
    table.add(std::move(row));
  }
  return table.to_string();
}

/// Prints why the list is empty.
Result<void> explain_emptiness(Connection& connection, const std::string& name) {
  MUSTER_TRY(const job::Job job,
             connection.call([&](api::Client& client) { return client.get(name); }));
  const auto& volumes = job.spec.volumes;
  const bool has_folder = std::any_of(volumes.begin(), volumes.end(), [](const auto& volume) {
    return volume.kind == job::Volume::Kind::kArtifacts;
  });
  std::cerr << safe_lines("muster: job '" + job.spec.name + "' " +
                          (has_folder ? "has left no artifacts"
                                      : "has no artifact folder; submit it with --artifacts") +
                          "\n")
            << std::flush;
  return {};
}

}  // namespace

Result<int> execute(const ArtifactListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const api::ArtifactPage page,
             all_artifacts(connection, command.name, {.checksums = command.checksums}));
  if (page.artifacts.empty() && !page.truncated) {
    MUSTER_CHECK(explain_emptiness(connection, command.name));
  }
  MUSTER_CHECK(
      show(command.output, artifact_table(page, command.checksums), api::artifacts_to_json(page)));
  if (!page.truncated) return kExitDone;
  std::cerr << safe_lines(error_text(unlistable_artifacts(command.name), "muster")) << std::flush;
  return kExitFailed;
}

Result<int> execute(const ArtifactGetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const FetchedArtifacts fetched, fetch_artifacts(connection, command, "muster"));
  const bool nothing =
      fetched.files + fetched.here_already + fetched.left_out + fetched.failed == 0;
  if (nothing) {
    MUSTER_CHECK(explain_emptiness(connection, command.name));
    return kExitDone;
  }
  std::string text = "muster: fetched " + workspace::count_text(fetched.files, "file", "files") +
                     ", " + workspace::size_text(fetched.bytes) + ", into " +
                     workspace::shown(command.folder);
  if (fetched.here_already > 0) {
    text += "; " + std::to_string(fetched.here_already) + " already here";
  }
  std::cerr << safe_lines(text + "\n") << std::flush;
  return fetched.failed > 0 ? kExitFailed : kExitDone;
}

using base::UniqueFd;

namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr size_t kHashedPieceBytes = 256 << 10;

Error in_the_way(const std::string& path, int number) {
  Error error = base::system_error("cannot write " + workspace::shown(path), number);
  if (number == ELOOP || number == ENOTDIR || number == EISDIR || number == EEXIST) {
    error.code = ErrorCode::kConflict;
    error.advice = "another file or folder of that name exists; choose another folder with --to";
  }
  return error;
}

/// Opens the parent folder of `path`; creates missing folders.
Result<UniqueFd> make_parent(int root, const std::string& path) {
  UniqueFd at(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  size_t begin = 0;
  for (size_t slash = path.find('/'); at && slash != std::string::npos;
       slash = path.find('/', begin)) {
    const std::string name = path.substr(begin, slash - begin);
    if (::mkdirat(at.get(), name.c_str(), 0777) != 0 && errno != EEXIST) break;
    UniqueFd inner(::openat(at.get(), name.c_str(), kFolder));
    if (!inner) return in_the_way(path, errno);
    at = std::move(inner);
    begin = slash + 1;
  }
  if (!at || path.find('/', begin) != std::string::npos) return in_the_way(path, errno);
  return at;
}

/// Depends on the path and the content, so that a download continues only a part of the same
/// content.
std::string part_name(const ExpectedFile& file) {
  constexpr size_t kDigits = 32;
  return ".muster-part-" + workspace::chunk_id(file.path + '\n' + file.sha256).substr(0, kDigits);
}

/// Adds the bytes already received to the checksum, and returns their number.
Result<int64_t> sum_up(const UniqueFd& file, workspace::Sha256& sha) {
  int64_t bytes = 0;
  while (true) {
    MUSTER_TRY(const std::string piece, workspace::read_at(file, bytes, kHashedPieceBytes));
    if (piece.empty()) return bytes;
    sha.put(piece);
    bytes += static_cast<int64_t>(piece.size());
  }
}

timespec as_timespec(base::Time time) {
  const auto since = time.time_since_epoch();
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  return {.tv_sec = whole.count(), .tv_nsec = (since - whole).count()};
}

}  // namespace

Result<ReceivedFiles> ReceivedFiles::open(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return base::system_error("cannot make folder " + workspace::shown(folder.native()),
                              error.value());
  }
  MUSTER_TRY(UniqueFd root, workspace::open_root(folder));
  return ReceivedFiles(std::move(root));
}

bool ReceivedFiles::has(const ExpectedFile& file) const {
  if (file.sha256.empty() || !workspace::is_tree_path(file.path)) return false;
  workspace::Beneath beneath(UniqueFd(::openat(root_.get(), ".", kFolder)));
  const int parent = beneath.parent_of(file.path);
  if (parent < 0) return false;
  const UniqueFd fd(::openat(parent, workspace::name_of(file.path).c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || status.st_size != file.bytes) return false;
  workspace::Sha256 sha;
  return sum_up(fd, sha) && sha.digest() == file.sha256;
}

Result<ReceivedFile> ReceivedFiles::receive(const ExpectedFile& expected) {
  if (!workspace::is_tree_path(expected.path)) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the server names a file " + workspace::shown(expected.path) +
                         ", which is not a path within the folder"};
  }
  ReceivedFile file;
  file.expected_ = expected;
  file.root_ = root_.get();
  MUSTER_TRY(file.parent_, make_parent(root_.get(), expected.path));
  file.part_ = part_name(expected);
  file.fd_.reset(::openat(root_.get(), file.part_.c_str(),
                          O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  struct stat status{};
  if (!file.fd_ || ::fstat(file.fd_.get(), &status) != 0) return in_the_way(file.part_, errno);
  if (!S_ISREG(status.st_mode)) return in_the_way(file.part_, EEXIST);
  // Without a checksum, it is unknown whether the existing bytes belong to the same file.
  if (expected.sha256.empty() || status.st_size > expected.bytes) {
    MUSTER_CHECK(file.begin_anew());
    return file;
  }
  MUSTER_TRY(file.bytes_, sum_up(file.fd_, file.sha_));
  if (::lseek(file.fd_.get(), file.bytes_, SEEK_SET) < 0) return in_the_way(file.part_, errno);
  return file;
}

Result<void> ReceivedFile::put(std::string_view bytes) {
  MUSTER_CHECK(base::write_all(fd_.get(), bytes));
  sha_.put(bytes);
  bytes_ += static_cast<int64_t>(bytes.size());
  return {};
}

Result<void> ReceivedFile::begin_anew() {
  if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) < 0) {
    return base::system_error("cannot write " + workspace::shown(expected_.path), errno);
  }
  bytes_ = 0;
  sha_ = workspace::Sha256();
  return {};
}

Result<void> ReceivedFile::keep() {
  const std::string sum = sha_.digest();
  if (!expected_.sha256.empty() && sum != expected_.sha256) {
    MUSTER_CHECK(begin_anew());
    return Error{.code = ErrorCode::kInternal,
                 .what = workspace::shown(expected_.path) +
                         " was damaged in transfer: its SHA-256 is " + sum + ", not " +
                         expected_.sha256,
                 .advice = "repeat the command"};
  }
  const timespec modified = as_timespec(expected_.modified);
  const timespec times[] = {modified, modified};
  // If the file system cannot store times, the file is kept without its time.
  static_cast<void>(::futimens(fd_.get(), times));
  const std::string name = workspace::name_of(expected_.path);
  if (::renameat(root_, part_.c_str(), parent_.get(), name.c_str()) != 0) {
    return in_the_way(expected_.path, errno);
  }
  return {};
}

}  // namespace muster::cli::files

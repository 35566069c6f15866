#include "cli/spec/send_workspace.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "api/file_wire.h"
#include "base/units.h"
#include "cli/common/terminal.h"
#include "job/spec.h"
#include "job/spec_table.h"
#include "record/field.h"
#include "workspace/manifest.h"
#include "workspace/path_text.h"
#include "workspace/scan.h"

namespace muster::cli::spec {

using base::Error;
using base::ErrorCode;
using workspace::ChunkId;
using workspace::SourceKind;

namespace {

Result<int64_t> limit_of(const WorkspaceOptions& options) {
  constexpr const char* kVariable = "MUSTER_WORKSPACE_LIMIT";
  if (options.most_bytes > 0) return options.most_bytes;
  const char* const limit = std::getenv(kVariable);
  if (limit == nullptr || *limit == '\0') return workspace::kUsualLimit;
  auto bytes = base::parse_bytes(limit);
  if (bytes && *bytes > 0) return *bytes;
  return Error{.code = ErrorCode::kInvalid,
               .what = std::string("$") + kVariable + " is '" + limit + "', which is not a size",
               .advice = "a size looks like 500M or 2G"};
}

/// Sizes requests to what the connection sends in a second or two: a server waits only a limited
/// time for a complete request, and a fast connection should not wait for answers.
class Pace {
 public:
  size_t bytes() const { return bytes_; }
  void took(std::chrono::steady_clock::duration time) {
    constexpr std::chrono::seconds kShort{1};
    constexpr std::chrono::seconds kLong{4};
    if (time < kShort) bytes_ = std::min(bytes_ * 2, api::kMostChunkBytes);
    if (time > kLong) bytes_ = std::max(bytes_ / 2, kLeast);
  }

 private:
  static constexpr size_t kLeast = 128 << 10;
  size_t bytes_ = 1 << 20;
};

/// The chunks of a tree: those of its files, and those of its own list of files.
class Supply {
 public:
  explicit Supply(const workspace::Scan& scan) {
    for (const std::string_view piece : workspace::cut_into_chunks(scan.encoded)) {
      manifest_.push_back(workspace::chunk_id(piece));
      pieces_.emplace(manifest_.back(), piece);
    }
    for (const workspace::ChunkSource& chunk : scan.chunks) files_.emplace(chunk.id, &chunk);
    for (const workspace::ChunkSource& chunk : scan.chunks) all_.push_back(chunk.id);
    all_.insert(all_.end(), manifest_.begin(), manifest_.end());
  }

  const std::vector<ChunkId>& all() const { return all_; }
  const std::vector<ChunkId>& manifest() const { return manifest_; }

  Result<std::string> content(const ChunkId& id) const {
    const auto file = files_.find(id);
    if (file != files_.end()) return workspace::read_chunk(*file->second);
    const auto piece = pieces_.find(id);
    if (piece != pieces_.end()) return std::string(piece->second);
    return Error{.code = ErrorCode::kInternal,
                 .what = "the server requests an unknown chunk: '" + id + "'",
                 .advice = "check that server and client have the same version"};
  }
  int64_t file_bytes(const ChunkId& id) const {
    const auto file = files_.find(id);
    return file == files_.end() ? 0 : static_cast<int64_t>(file->second->bytes);
  }

 private:
  std::vector<ChunkId> all_;
  std::vector<ChunkId> manifest_;
  std::unordered_map<ChunkId, const workspace::ChunkSource*> files_;
  std::unordered_map<ChunkId, std::string_view> pieces_;
};

/// Delays Ctrl-C while there are temporary files to clean up. The destructor ends the process if a
/// signal arrived meanwhile.
class HeldInterrupt {
 public:
  HeldInterrupt() = default;
  HeldInterrupt(const HeldInterrupt&) = delete;
  HeldInterrupt& operator=(const HeldInterrupt&) = delete;
  ~HeldInterrupt() {
    const int signal = waiting();
    interrupts_.reset();
    if (signal != 0) ::raise(signal);
  }

  Result<void> check() const {
    if (waiting() == 0) return {};
    return Error{.code = ErrorCode::kRefused, .what = "interrupted"};
  }

 private:
  static int waiting() {
    sigset_t signals;
    if (::sigpending(&signals) != 0) return 0;
    for (const int signal : {SIGINT, SIGTERM}) {
      if (::sigismember(&signals, signal) == 1) return signal;
    }
    return 0;
  }

  std::optional<Interrupts> interrupts_{std::in_place};
};

class Sending {
 public:
  Sending(Connection& connection, const std::string& project, const WorkspaceOptions& options)
      : connection_(connection), project_(project), options_(options) {}

  Result<SentWorkspace> run() {
    MUSTER_TRY(const int64_t most_bytes, limit_of(options_));
    std::error_code failed;
    const std::filesystem::path here = std::filesystem::current_path(failed);
    MUSTER_TRY(const SourceKind kind, workspace::kind_of(options_.source, here));
    if (kind != SourceKind::kFolder) held_.emplace();
    MUSTER_TRY(const workspace::Fetched fetched,
               workspace::fetch(options_.source, here, most_bytes, [this](std::string_view line) {
                 progress_.show("fetching", line);
               }));
    MUSTER_CHECK(check_interrupt());
    MUSTER_TRY(const workspace::Scan scan, read(fetched, kind, most_bytes));
    SentWorkspace sent{.tree = scan.id,
                       .commit = fetched.commit,
                       .bytes = scan.manifest.bytes(),
                       .files = scan.manifest.files()};
    MUSTER_TRY(sent.sent, send(scan));
    progress_.clear();
    report(sent, fetched.note);
    return sent;
  }

 private:
  Result<workspace::Scan> read(const workspace::Fetched& fetched, SourceKind kind,
                               int64_t most_bytes) {
    const workspace::ScanOptions options{
        .ignore = options_.ignore,
        .use_gitignore = options_.use_gitignore && kind == SourceKind::kFolder,
        .flags = options_.source.flags,
        .most_bytes = most_bytes};
    return workspace::scan_folder(fetched.folder, options, [this](int64_t done, int64_t all) {
      progress_.show("reading", done, all);
    });
  }

  /// The bytes of the files that the server lacked.
  Result<int64_t> send(const workspace::Scan& scan) {
    const auto known =
        connection_.call([&](api::Client& client) { return client.tree(project_, scan.id); });
    if (known) return 0;
    if (known.error().code != ErrorCode::kNotFound) return known.error();
    const Supply supply(scan);
    MUSTER_TRY(int64_t sent, send_chunks(supply));
    auto kept = keep(scan.id, supply);
    if (!kept && kept.error().code == ErrorCode::kNotFound) {
      // The server may meanwhile have removed chunks that it had before.
      MUSTER_TRY(const int64_t again, send_chunks(supply));
      sent += again;
      kept = keep(scan.id, supply);
    }
    if (!kept) return kept.error();
    return sent;
  }

  Result<api::TreeInfo> keep(const std::string& tree, const Supply& supply) {
    return connection_.call(
        [&](api::Client& client) { return client.keep_tree(project_, tree, supply.manifest()); });
  }

  Result<int64_t> send_chunks(const Supply& supply) {
    MUSTER_TRY(const std::vector<ChunkId> missing, connection_.call([&](api::Client& client) {
      return client.missing_chunks(project_, supply.all());
    }));
    int64_t all = 0;
    for (const ChunkId& id : missing) all += supply.file_bytes(id);
    int64_t done = 0;
    std::string body;
    for (const ChunkId& id : missing) {
      MUSTER_TRY(const std::string content, supply.content(id));
      constexpr size_t kFrame = 4;
      if (!body.empty() && body.size() + kFrame + content.size() > pace_.bytes()) {
        MUSTER_CHECK(put(std::exchange(body, {})));
        progress_.show("sending", done, all);
      }
      api::append_chunk(body, content);
      done += supply.file_bytes(id);
    }
    if (!body.empty()) MUSTER_CHECK(put(body));
    return all;
  }

  Result<void> put(const std::string& body) {
    MUSTER_CHECK(check_interrupt());
    const auto since = std::chrono::steady_clock::now();
    MUSTER_CHECK(
        connection_.call([&](api::Client& client) { return client.put_chunks(project_, body); }));
    pace_.took(std::chrono::steady_clock::now() - since);
    return {};
  }

  Result<void> check_interrupt() const { return held_ ? held_->check() : Result<void>{}; }

  void report(const SentWorkspace& sent, const std::string& note) const {
    constexpr size_t kShortCommit = 12;
    const std::string prefix = options_.program + ": " + options_.what + ": ";
    std::string line = prefix;
    if (!sent.commit.empty()) line += "commit " + sent.commit.substr(0, kShortCommit) + ", ";
    line += workspace::count_text(sent.files, "file", "files") + ", " +
            workspace::size_text(sent.bytes);
    line += sent.sent > 0 ? "; sent " + workspace::size_text(sent.sent) : "; nothing new to send";
    if (!note.empty()) line += "\n" + prefix + note;
    std::cerr << line << "\n";
  }

  // Declared first, so that it is destroyed last.
  std::optional<HeldInterrupt> held_;
  Connection& connection_;
  const std::string& project_;
  const WorkspaceOptions& options_;
  ProgressBar progress_;
  Pace pace_;
};

}  // namespace

Result<SentWorkspace> send_workspace(Connection& connection, const std::string& project,
                                     const WorkspaceOptions& options) {
  return Sending(connection, project, options).run();
}

using job::Volume;

namespace {

constexpr const char* kArtifactsFolder = "/artifacts";
/// The value of a flag that was given without a value.
constexpr const char* kNoValue = "true";

}  // namespace

const record::Table& table_of(const WorkspaceKey*) {
  using record::field;
  static const record::Table table = record::table<WorkspaceKey>(
      "WorkspaceKey",
      {field<&WorkspaceKey::from>("from",
                                  {.help = "A folder, an archive, or the URL of a repository.",
                                   .need = record::Need::kRequired}),
       field<&WorkspaceKey::ref>("ref", {.help = "Branch, tag or commit of the repository."}),
       field<&WorkspaceKey::ignore>("ignore", {.help = "Patterns of files that are not sent."})},
      "The files of a job.");
  return table;
}

void add_label(const std::string& text, job::JobSpec& spec) {
  const size_t equals = text.find('=');
  spec.labels[text.substr(0, equals)] = equals == std::string::npos ? "" : text.substr(equals + 1);
}

void read_content_flags(FlagReader& reader, job::JobSpec& spec) {
  if (reader.has("--artifacts")) {
    std::string folder = reader.text("--artifacts");
    if (folder == kNoValue) folder = kArtifactsFolder;
    if (!folder.starts_with('/')) {
      reader.fault("--artifacts", "'" + folder + "' is not an absolute path");
      folder = kArtifactsFolder;
    }
    std::erase_if(spec.volumes,
                  [](const Volume& volume) { return volume.kind == Volume::Kind::kArtifacts; });
    spec.volumes.push_back({.kind = Volume::Kind::kArtifacts, .target = std::move(folder)});
  }
  for (const std::string& text : reader.texts("--label")) add_label(text, spec);
  std::vector<Volume> added;
  for (const std::string& text : reader.texts("--volume")) {
    if (const auto volume = job::parse_volume(text)) {
      added.push_back(*volume);
    } else {
      reader.fault("--volume", "'" + text + "' " + job::kVolumeForms);
    }
  }
  // Two flags with the same target are a fault, which validation reports.
  std::erase_if(spec.volumes, [&](const Volume& old) {
    return std::any_of(added.begin(), added.end(),
                       [&](const Volume& volume) { return volume.target == old.target; });
  });
  spec.volumes.insert(spec.volumes.end(), added.begin(), added.end());
}

std::optional<WorkspaceOptions> read_workspace_flags(FlagReader& reader) {
  if (!reader.has("--workspace")) {
    for (const char* flag : {"--workspace-ref", "--ignore"}) {
      if (reader.has(flag)) reader.fault(flag, "needs --workspace");
    }
    return std::nullopt;
  }
  if (reader.text("--workspace").empty()) {
    reader.fault("--workspace", "is empty; give a folder, an archive or a repository");
  }
  if (reader.has("--folder")) {
    reader.fault("--folder", "cannot be used with --workspace, which is the tasks' working folder");
  }
  return WorkspaceOptions{
      .source = {.where = reader.text("--workspace"), .ref = reader.text("--workspace-ref")},
      .ignore = reader.texts("--ignore")};
}

void work_in(const std::string& tree, job::JobSpec& spec) {
  std::erase_if(spec.volumes, [](const Volume& volume) {
    return volume.kind == Volume::Kind::kTree && volume.target == kWorkspaceFolder;
  });
  spec.volumes.push_back({.kind = Volume::Kind::kTree, .source = tree, .target = kWorkspaceFolder});
  spec.folder = kWorkspaceFolder;
  job::forget_inherited_folder(spec);
}

}  // namespace muster::cli::spec

#include "cli/artifact_fetch.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "cli/progress_bar.h"
#include "cli/received_files.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "workspace/path_text.h"

namespace muster::cli {

namespace {

using api::Artifact;
using base::Error;
using base::ErrorCode;

/// Whether the artifact is `path`, or lies in that folder.
bool is_below(const Artifact& artifact, const std::string& path) {
  const std::string folder = path.ends_with('/') ? path : path + "/";
  return artifact.path == path || artifact.path.starts_with(folder);
}

Result<std::vector<Artifact>> wanted(Connection& connection, const ArtifactGetCommand& command) {
  std::vector<Artifact> all;
  const std::vector<std::string> prefixes =
      command.paths.empty() ? std::vector<std::string>{""} : command.paths;
  for (const std::string& prefix : prefixes) {
    MUSTER_TRY(api::ArtifactPage page,
               all_artifacts(connection, command.name, {.checksums = true, .prefix = prefix}));
    if (!prefix.empty()) {
      std::erase_if(page.artifacts, [&](const Artifact& each) { return !is_below(each, prefix); });
    }
    if (page.artifacts.empty() && !prefix.empty()) {
      return Error{.code = ErrorCode::kNotFound,
                   .what = "job '" + command.name + "' has no artifact " + workspace::shown(prefix),
                   .advice = "muster artifacts list " + command.name + " shows what it has"};
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
    MUSTER_TRY(const std::vector<Artifact> all, wanted(connection_, command_));
    MUSTER_TRY(ReceivedFiles files, ReceivedFiles::open(command_.folder));
    // Sparse files may come to more than there are numbers for.
    constexpr int64_t kMost = int64_t{1} << 60;
    for (const Artifact& artifact : all)
      all_bytes_ = std::min(kMost, all_bytes_ + std::min(kMost, artifact.bytes));
    for (const Artifact& artifact : all) {
      const auto fetched = take(files, artifact);
      if (fetched) continue;
      ++totals_.failed;
      tell(error_text(fetched.error(), program_));
    }
    progress_.clear();
    return totals_;
  }

 private:
  void tell(const std::string& text) {
    progress_.clear();
    std::cerr << safe_lines(text) << std::flush;
  }

  Result<void> take(ReceivedFiles& files, const Artifact& artifact) {
    if (artifact.kind != Artifact::Kind::kFile) {
      ++totals_.left_out;
      tell(program_ + ": left out: " + workspace::shown(artifact.path) + " is a " +
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
      tell(program_ + ": " + workspace::shown(artifact.path) +
           " is being written to: these are its first " + std::to_string(file.bytes()) +
           " bytes, unchecked\n");
    }
    return {};
  }

  /// Goes on where it was cut off, as often as the server brings something.
  Result<void> fetch(ReceivedFile& file, const Artifact& artifact) {
    while (true) {
      const bool is_whole = !artifact.sha256.empty() && file.bytes() == artifact.bytes;
      if (is_whole) return {};
      auto fetched = fetch_rest(file, artifact);
      if (fetched || fetched.error().code != ErrorCode::kUnavailable) return fetched;
      // A file without a sum may be another by now.
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

Result<FetchedArtifacts> fetch_artifacts(Connection& connection, const ArtifactGetCommand& command,
                                         const std::string& program) {
  return Fetching(connection, command, program).run();
}

std::string readable_path(const std::string& path) {
  const std::string quoted = workspace::shown(path);
  return quoted == "'" + path + "'" ? path : quoted;
}

}  // namespace muster::cli

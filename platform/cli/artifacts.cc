// artifacts: what jobs leave in their artifacts folders, listed and fetched.
#include <algorithm>
#include <iostream>

#include "base/text.h"
#include "cli/artifact_fetch.h"
#include "cli/command_parts.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "workspace/path_text.h"

namespace muster::cli {

namespace {

Call read_artifact_list(Reading& in) {
  return ArtifactListCommand{.name = in.name("job"),
                             .project = in.whose_job(),
                             .checksums = in.reader.has("--checksums"),
                             .output = in.output()};
}

Call read_artifact_get(Reading& in) {
  ArtifactGetCommand command{
      .name = in.name("job"), .project = in.whose_job(), .paths = {}, .folder = {}};
  const std::vector<std::string>& words = in.arguments.names;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].empty()) in.reader.fault("", "an empty word names no file");
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
  Command list{.name = "list",
               .alias = "ls",
               .help = "the files in a job's artifacts folder, during the job and after it",
               .read = read_artifact_list,
               .positionals = one_of(Offer::kJobs),
               .flags = Flags{{.name = "--checksums", .help = "with the SHA-256 of each"}} +
                        whose_job_flag() + output_flag(),
               .example = "muster artifacts list dist --checksums"};
  Command get{.name = "get",
              .help = "fetch them, or only some; what has come already does not come again",
              .read = read_artifact_get,
              .positionals = {.name = "NAME [PATH...]",
                              .least = 1,
                              .most = kAnyNumber,
                              .choices = {},
                              .offer = Offer::kJobs},
              .flags = Flags{{.name = "--to",
                              .value = "FOLDER",
                              .help = "into this folder (default: NAME-artifacts)",
                              .offer = Offer::kFolders}} +
                       whose_job_flag(),
              .example = "muster artifacts get dist model.pt --to ."};
  return {.name = "artifacts",
          .help = "what jobs leave in their artifacts folders",
          .commands = {std::move(list), std::move(get)}};
}

namespace {

using api::Artifact;

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

/// Why there is nothing to be seen.
Result<void> explain_emptiness(Connection& connection, const std::string& name) {
  MUSTER_TRY(const job::Job job,
             connection.call([&](api::Client& client) { return client.get(name); }));
  const auto& volumes = job.spec.volumes;
  const bool has_folder = std::any_of(volumes.begin(), volumes.end(), [](const auto& volume) {
    return volume.kind == job::Volume::Kind::kArtifacts;
  });
  std::cerr << safe_lines("muster: job '" + job.spec.name + "' " +
                          (has_folder ? "has left no artifacts"
                                      : "has no artifacts folder; submit it with --artifacts") +
                          "\n")
            << std::flush;
  return {};
}

}  // namespace

Result<int> execute(const ArtifactListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const api::ArtifactPage page,
             all_artifacts(connection, command.name, {.checksums = command.checksums}));
  if (page.artifacts.empty()) MUSTER_CHECK(explain_emptiness(connection, command.name));
  MUSTER_CHECK(
      show(command.output, artifact_table(page, command.checksums), api::artifacts_to_json(page)));
  return kExitDone;
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
    text += "; " + std::to_string(fetched.here_already) + " had come already";
  }
  std::cerr << safe_lines(text + "\n") << std::flush;
  return fetched.failed > 0 ? kExitFailed : kExitDone;
}

}  // namespace muster::cli

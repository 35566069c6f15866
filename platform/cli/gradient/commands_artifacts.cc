// jobs artifacts list, get and download.
#include <filesystem>
#include <string>
#include <utility>

#include "cli/artifact_fetch.h"
#include "cli/commands.h"
#include "cli/gradient/ascii_table.h"
#include "cli/gradient/command_parts.h"
#include "cli/report.h"
#include "workspace/path_text.h"

namespace muster::cli::gradient {

namespace {

/// "train/worker-0" is a job of the experiment train, whose artifacts all its jobs share.
std::string experiment_in(const std::string& id) {
  return id.substr(0, id.find('/'));
}

}  // namespace

Result<int> list_artifacts(Asked& asked) {
  const std::string id = experiment_in(required(asked, "--id", "say which job"));
  const std::string prefix = asked.reader.text("--files");
  const bool with_size = asked.reader.has("--size");
  return with_server(asked, kFetch, "Job", [&](Connection& connection) -> Result<int> {
    MUSTER_TRY(const api::ArtifactPage page, all_artifacts(connection, id, {.prefix = prefix}));
    if (page.artifacts.empty()) {
      MUSTER_CHECK(say("No artifacts found"));
      return kExitDone;
    }
    AsciiTable table;
    std::vector<AsciiTable::Cell> title{"Files"};
    if (with_size) title.emplace_back("Size (in bytes)");
    table.add(title);
    for (const api::Artifact& each : page.artifacts) {
      std::vector<AsciiTable::Cell> row{readable_path(each.path)};
      if (with_size) row.emplace_back(std::to_string(each.bytes));
      table.add(row);
    }
    MUSTER_CHECK(show(table.to_string()));
    return kExitDone;
  });
}

Result<int> get_artifacts(Asked& asked) {
  ArtifactGetCommand command{.name = experiment_in(required(asked, "--id", "say which job")),
                             .project = {},
                             .paths = asked.reader.texts("--files"),
                             .folder = {}};
  command.folder = asked.reader.text("--destination", command.name + "-artifacts");
  return with_server(asked, kFetch, "Job", [&](Connection& connection) -> Result<int> {
    MUSTER_TRY(const FetchedArtifacts fetched, fetch_artifacts(connection, command, "gradient"));
    const size_t all = fetched.files + fetched.here_already;
    MUSTER_CHECK(say(all == 0 ? "No artifacts found"
                              : workspace::count_text(all, "file", "files") + " in " +
                                    workspace::shown(command.folder)));
    return fetched.failed > 0 ? kExitFailed : kExitDone;
  });
}

}  // namespace muster::cli::gradient

// jobs artifacts list, get and download.
#include <filesystem>
#include <string>
#include <utility>

#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "cli/files/files.h"
#include "dialects/gradient/ascii_table.h"
#include "dialects/gradient/command_parts.h"
#include "workspace/path_text.h"

namespace muster::dialects::gradient {

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
  return with_server(asked, kFetch, "Job", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const api::ArtifactPage page,
               cli::files::all_artifacts(connection, id, {.prefix = prefix}));
    if (page.artifacts.empty()) {
      MUSTER_CHECK(say("No artifacts found"));
      return cli::kExitDone;
    }
    AsciiTable table;
    std::vector<AsciiTable::Cell> title{"Files"};
    if (with_size) title.emplace_back("Size (in bytes)");
    table.add(title);
    for (const api::Artifact& each : page.artifacts) {
      std::vector<AsciiTable::Cell> row{cli::files::readable_path(each.path)};
      if (with_size) row.emplace_back(std::to_string(each.bytes));
      table.add(row);
    }
    MUSTER_CHECK(cli::show(table.to_string()));
    return cli::kExitDone;
  });
}

Result<int> get_artifacts(Asked& asked) {
  cli::files::ArtifactGetCommand command{
      .name = experiment_in(required(asked, "--id", "say which job")),
      .project = {},
      .paths = asked.reader.texts("--files"),
      .folder = {}};
  command.folder = asked.reader.text("--destination", command.name + "-artifacts");
  return with_server(asked, kFetch, "Job", [&](cli::Connection& connection) -> Result<int> {
    MUSTER_TRY(const cli::files::FetchedArtifacts fetched,
               cli::files::fetch_artifacts(connection, command, "gradient"));
    const size_t all = fetched.files + fetched.here_already;
    MUSTER_CHECK(say(all == 0 ? "No artifacts found"
                              : workspace::count_text(all, "file", "files") + " in " +
                                    workspace::shown(command.folder)));
    return fetched.failed > 0 ? cli::kExitFailed : cli::kExitDone;
  });
}

}  // namespace muster::dialects::gradient

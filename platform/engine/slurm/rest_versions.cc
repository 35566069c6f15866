#include "engine/slurm/rest_versions.h"

#include <algorithm>
#include <iterator>

#include "base/units.h"

namespace muster::engine::slurm {

namespace {

constexpr std::string_view kPrefix = "v0.0.";

/// Ascending. A version speaks as the last that is not newer.
constexpr std::array kDialects{
    RestDialect{.first = 36,
                .excluded_nodes = "exclude_nodes",
                .output = "standard_out",
                .gpus = "gpus_per_node"},
    RestDialect{.first = 37,
                .excluded_nodes = "exclude_nodes",
                .output = "standard_output",
                .gpus = "gpus_per_node"},
    RestDialect{.first = 39,
                .wraps_numbers = true,
                .lists = true,
                .counts_nodes = true,
                .excluded_nodes = "excluded_nodes",
                .output = "standard_output",
                .gpus = "tres_per_node",
                .gpus_prefix = "gres:gpu:"},
    RestDialect{.first = 40,
                .wraps_numbers = true,
                .lists = true,
                .script_in_job = true,
                .counts_nodes = true,
                .excluded_nodes = "excluded_nodes",
                .output = "standard_output",
                .gpus = "tres_per_node",
                .gpus_prefix = "gres/gpu:",
                .without_details = "?flags=ALL"},
    RestDialect{.first = 41,
                .wraps_numbers = true,
                .lists = true,
                .script_in_job = true,
                .counts_nodes = true,
                .excluded_nodes = "excluded_nodes",
                .output = "standard_output",
                .gpus = "tres_per_node",
                .gpus_prefix = "gres/gpu:",
                .without_details = "?flags=ALL",
                .tells_changes = true},
};

bool serves(const RestPaths& paths, const std::string& what) {
  return std::find(paths.served.begin(), paths.served.end(), what) != paths.served.end();
}

/// Some versions end the paths of collections with a slash, and answer 404 without it.
std::string path_of(const RestPaths& paths, const std::string& path) {
  return serves(paths, path + "/ GET") ? path + "/" : path;
}

}  // namespace

const RestDialect& dialect_of(int version) {
  const auto next = std::find_if(kDialects.begin(), kDialects.end(),
                                 [&](const RestDialect& one) { return one.first > version; });
  return next == kDialects.begin() ? *next : *std::prev(next);
}

std::string rest_version_name(int version) {
  return std::string(kPrefix) + std::to_string(version);
}

int rest_version_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return 0;
  const auto number = base::number_of<int>(name.substr(kPrefix.size()));
  return number && *number > 0 ? *number : 0;
}

RestSpeech choose_speech(const RestPaths& paths, int newest) {
  RestSpeech speech;
  for (const int version : paths.versions) {
    if (version < kOldestRestVersion || version > newest) continue;
    const std::string submit = "/slurm/" + rest_version_name(version) + "/job/submit";
    if (version > speech.version && serves(paths, submit + " POST")) speech.version = version;
  }
  if (speech.version == 0) return speech;
  const std::string name = rest_version_name(speech.version);
  const std::string slurm = "/slurm/" + name;
  const std::string past = "/slurmdb/" + name + "/job/";
  speech.dialect = dialect_of(speech.version);
  speech.jobs = path_of(paths, slurm + "/jobs");
  speech.nodes = path_of(paths, slurm + "/nodes");
  speech.ping = path_of(paths, slurm + "/ping");
  speech.submit = slurm + "/job/submit";
  speech.job = slurm + "/job/";
  if (serves(paths, past + "{job_id} GET")) speech.past_job = past;
  speech.cancels_many = serves(paths, slurm + "/jobs/ DELETE");
  return speech;
}

}  // namespace muster::engine::slurm

#include "cli/spec/content_flags.h"

#include "job/spec.h"
#include "job/spec_table.h"

namespace muster::cli::spec {

using job::Volume;

namespace {

constexpr const char* kArtifactsFolder = "/artifacts";
/// What stands for the value of a flag that was given without one.
constexpr const char* kNoValue = "true";

}  // namespace

void add_label(const std::string& text, job::JobSpec& spec) {
  const size_t equals = text.find('=');
  spec.labels[text.substr(0, equals)] = equals == std::string::npos ? "" : text.substr(equals + 1);
}

void read_content_flags(FlagReader& reader, job::JobSpec& spec) {
  if (reader.has("--artifacts")) {
    const std::string folder = reader.text("--artifacts");
    spec.volumes.push_back({.kind = Volume::Kind::kArtifacts,
                            .target = folder == kNoValue ? kArtifactsFolder : folder});
  }
  for (const std::string& text : reader.texts("--label")) add_label(text, spec);
  for (const std::string& text : reader.texts("--volume")) {
    if (const auto volume = job::parse_volume(text)) {
      spec.volumes.push_back(*volume);
    } else {
      reader.fault("--volume", "'" + text + "' " + job::kVolumeForms);
    }
  }
}

std::optional<WorkspaceWish> read_workspace_flags(FlagReader& reader) {
  if (!reader.has("--workspace")) {
    for (const char* flag : {"--workspace-ref", "--ignore"}) {
      if (reader.has(flag)) reader.fault(flag, "belongs to --workspace, which is not given");
    }
    return std::nullopt;
  }
  if (reader.has("--folder")) {
    reader.fault("--folder", "does not go with --workspace, which tasks work in");
  }
  return WorkspaceWish{
      .source = {.where = reader.text("--workspace"), .ref = reader.text("--workspace-ref")},
      .ignore = reader.texts("--ignore")};
}

void work_in(const std::string& tree, job::JobSpec& spec) {
  spec.volumes.push_back({.kind = Volume::Kind::kTree, .source = tree, .target = kWorkspaceFolder});
  spec.folder = kWorkspaceFolder;
  job::forget_inherited_folder(spec);
}

}  // namespace muster::cli::spec

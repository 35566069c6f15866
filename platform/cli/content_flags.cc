#include "cli/content_flags.h"

#include <filesystem>

#include "base/text.h"
#include "job/inherited.h"

namespace muster::cli {

using job::Volume;

std::optional<Volume> parse_volume(const std::string& text, const std::filesystem::path& folder) {
  std::vector<std::string> parts = base::split(text, ':');
  Volume volume;
  if (parts.size() == 3 && (parts[2] == "ro" || parts[2] == "rw")) {
    volume.read_only = parts[2] == "ro";
    parts.pop_back();
  }
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) return std::nullopt;
  volume.target = parts[1];
  constexpr std::string_view kStorage = "storage/";
  if (parts[0] == "artifacts") {
    volume.kind = Volume::Kind::kArtifacts;
  } else if (parts[0].starts_with(kStorage)) {
    volume.kind = Volume::Kind::kStorage;
    volume.source = parts[0].substr(kStorage.size());
  } else {
    volume.source = (folder / parts[0]).lexically_normal().string();
  }
  return volume;
}

namespace {

constexpr const char* kArtifactsFolder = "/artifacts";
/// What stands for the value of a flag that was given without one.
constexpr const char* kNoValue = "true";

}  // namespace

void add_label(const std::string& text, job::JobSpec& spec) {
  const size_t equals = text.find('=');
  spec.labels[text.substr(0, equals)] = equals == std::string::npos ? "" : text.substr(equals + 1);
}

void read_content_flags(const Caller& caller, FlagReader& reader, job::JobSpec& spec) {
  spec.held = reader.has("--hold");
  spec.input = reader.has("--stdin");
  spec.terminal = reader.has("--tty");
  if (reader.has("--keep-for")) {
    spec.keep_for = reader.duration("--keep-for", std::chrono::milliseconds{0});
  }
  if (reader.has("--artifacts")) {
    const std::string folder = reader.text("--artifacts");
    spec.volumes.push_back({.kind = Volume::Kind::kArtifacts,
                            .target = folder == kNoValue ? kArtifactsFolder : folder});
  }
  for (const std::string& text : reader.texts("--label")) add_label(text, spec);
  for (const std::string& text : reader.texts("--volume")) {
    if (const auto volume = parse_volume(text, caller.folder)) {
      spec.volumes.push_back(*volume);
    } else {
      reader.fault("--volume", "'" + text + "' " + kVolumeForms);
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

}  // namespace muster::cli

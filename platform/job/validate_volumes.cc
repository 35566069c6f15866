#include "job/validate_volumes.h"

#include <array>
#include <string>

#include "job/validate.h"
#include "job/validate_labels.h"

namespace muster::job {

namespace {

constexpr size_t kLongestPath = 1000;
constexpr size_t kTreeIdLength = 64;

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) &&
         (folder == "/" || path[folder.size()] == '/');
}

bool is_or_is_below(std::string_view path, std::string_view folder) {
  return path == folder || is_below(path, folder);
}

/// Absolute, and the only way to write it: so that two that are the same are told to be.
bool is_plain_absolute_path(std::string_view path) {
  if (path == "/") return true;
  if (!path.starts_with('/') || path.size() > kLongestPath) return false;
  if (!is_shown(path)) return false;
  return has_plain_parts(path.substr(1));
}

std::string no_plain_path(const std::string& path) {
  return in_quotes(path) + " is not an absolute path of at most " + std::to_string(kLongestPath) +
         " bytes without '.', '..', '//' and a '/' at its end";
}

bool is_tree_id(std::string_view text) {
  return text.size() == kTreeIdLength && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

void check_source(const Volume& volume, const std::string& field, Checker& check) {
  switch (volume.kind) {
    case Volume::Kind::kHostPath:
      return check.require(is_plain_absolute_path(volume.source), field,
                           no_plain_path(volume.source));
    case Volume::Kind::kTree:
      return check.require(volume.source.empty() || is_tree_id(volume.source), field,
                           in_quotes(volume.source) +
                               " is not the id of files that were sent; it has " +
                               std::to_string(kTreeIdLength) + " hex digits");
    case Volume::Kind::kStorage:
      return check.require(is_dns_label(volume.source, 63), field,
                           in_quotes(volume.source) +
                               " is not the name of a storage; use 1 to 63 of a-z, 0-9 and '-'");
    case Volume::Kind::kArtifacts:
      return check.require(volume.source.empty(), field,
                           "artifacts are the job's own; leave it out");
  }
}

/// Whether the target can be had at all, apart from the other volumes.
bool check_target(const std::string& target, const std::string& field, Checker& check) {
  if (!is_plain_absolute_path(target)) {
    check.require(false, field, no_plain_path(target));
    return false;
  }
  constexpr std::array<std::string_view, 4> kTaken{"/proc", "/sys", "/dev", "/generated"};
  const auto* taken = std::find_if(kTaken.begin(), kTaken.end(), [&](std::string_view folder) {
    return is_or_is_below(target, folder);
  });
  check.require(target != "/", field, "'/' is where everything else is; name a folder below it");
  check.require(taken == kTaken.end(), field,
                in_quotes(target) + " belongs to the sandbox; choose a path elsewhere");
  return target != "/" && taken == kTaken.end();
}

/// What `volume` cannot stand beside `other`, or empty.
std::string clash(const Volume& volume, const Volume& other) {
  if (volume.target == other.target) {
    return in_quotes(volume.target) + " is where another volume is already";
  }
  if (other.read_only && is_below(volume.target, other.target)) {
    return in_quotes(volume.target) + " is within " + in_quotes(other.target) +
           ", which is read-only: no folder can be made for it there";
  }
  return "";
}

}  // namespace

void check_volumes(const JobSpec& spec, Checker& check) {
  const std::vector<Volume>& volumes = spec.volumes;
  if (volumes.size() > static_cast<size_t>(kMaxVolumes)) {
    return check.require(false, "volumes", "are more than " + std::to_string(kMaxVolumes));
  }
  check.require(volumes.empty() || spec.sandbox != Sandbox::kNone, "volumes",
                "are made in a sandbox alone, and this job goes without one");
  for (size_t i = 0; i < volumes.size(); ++i) {
    const std::string field = "volumes[" + std::to_string(i) + "]";
    check_source(volumes[i], field + ".source", check);
    if (!check_target(volumes[i].target, field + ".target", check)) continue;
    // Each pair is looked at once: of two with the same target the second is at fault, of one
    // within the other the inner one.
    for (size_t j = 0; j < volumes.size(); ++j) {
      if (j == i || (j > i && volumes[j].target == volumes[i].target)) continue;
      const std::string what = clash(volumes[i], volumes[j]);
      check.require(what.empty(), field + ".target", what);
      if (!what.empty()) break;
    }
  }
}

}  // namespace muster::job

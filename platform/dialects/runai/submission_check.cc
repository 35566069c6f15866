#include "dialects/runai/submission_check.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/units.h"
#include "dialects/runai/master.h"
#include "job/validate.h"

namespace muster::dialects::runai {

namespace {

constexpr size_t kLongestName = 48;

/// The path of a field in a spec, and the flag that sets it; the first that fits counts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 28> kFlagOfField{
    {{"name", "--name"},
     {"project", "--project"},
     {"image", "--image"},
     {"user", "--run-as-user"},
     {"container.capabilities", "--add-capability"},
     {"container", "--image"},
     {"replaces_entrypoint", "--image"},
     {"command", "--command"},
     {"arguments", "--args"},
     {"slots_per_worker", "--slots-per-worker"},
     {"resources.gpus", "--gpu"},
     {"resources.gpu_share", "--gpu"},
     {"resources.gpu_memory", "--gpu-memory"},
     {"resources.cpus", "--cpu"},
     {"resources.memory", "--memory"},
     {"leader.resources.gpus", "--master-gpu"},
     {"leader.resources.gpu_share", "--master-gpu"},
     {"leader.environment", "--master-environment"},
     {"leader.command", "--command"},
     {"leader", "--master-args"},
     {"scheduling.min_workers", "--min-replicas"},
     {"scheduling.node_pools", "--node-pools"},
     {"scheduling.required_topology", "--required-pod-topology-key"},
     {"scheduling.preferred_topology", "--preferred-pod-topology-key"},
     {"scheduling.retries", "--backoff-limit"},
     {"environment", "--environment"},
     {"folder", "--working-dir"},
     {"labels", "--label"}}};

bool is_of(std::string_view field, std::string_view known) {
  return field.starts_with(known) &&
         (field.size() == known.size() || field[known.size()] == '.' || field[known.size()] == '[');
}

std::string flag_of_field(const std::string& field) {
  for (const auto& [known, flag] : kFlagOfField) {
    if (is_of(field, known)) return std::string(flag);
  }
  return is_of(field, "annotations") ? "--annotation" : field;
}

/// The flag behind "volumes[2].target".
std::string flag_of_volume(std::string_view field, const std::vector<AskedVolume>& volumes,
                           size_t own_volumes, const cli::FlagReader& reader) {
  field.remove_prefix(std::min(field.size(), std::string_view("volumes[").size()));
  const auto index = base::number_of<size_t>(field.substr(0, field.find(']')));
  if (!index) return "--volume";
  if (*index >= own_volumes) return volumes[*index - own_volumes].flag;
  return reader.has("--git-sync") ? "--git-sync" : "--create-home-dir";
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && letter(text.front()) && text.back() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || digit(c) || c == '-'; });
}

}  // namespace

void check_name(const std::string& name, bool is_prefix, cli::FlagReader& reader) {
  if (!is_name(name)) {
    // As Run:AI says it, two blanks included.
    reader.fault("",
                 "Job names must consist of lower case alphanumeric characters or '-' and start "
                 "with an alphabetic character (e.g. 'my-name',  or 'abc-123')");
  }
  const size_t most = kLongestName - (is_prefix ? std::string_view("-999").size() : 0);
  if (name.size() <= most) return;
  reader.fault("", "The len " + std::to_string(name.size()) + " of name " + name +
                       " is too long, it should be less than " + std::to_string(most + 1));
}

void check_submission(const Submission& submission, const std::vector<std::string>& path,
                      const std::vector<AskedVolume>& volumes, size_t own_volumes,
                      cli::FlagReader& reader) {
  const cli::FlagReader unread = reader;
  // Its name has been checked, and the image's absence told.
  job::JobSpec spec = named_after(submission.spec, "job");
  if (spec.image.empty()) spec.image = "image";
  for (const base::Fault& fault : job::validate(spec)) {
    std::string flag = flag_of_field(fault.field);
    if (fault.field == "workers") flag = workers_flag(reader, path);
    if (is_of(fault.field, "volumes")) {
      flag = flag_of_volume(fault.field, volumes, own_volumes, reader);
    }
    // The master claims what a worker does, where it is not told otherwise.
    const bool is_a_repetition =
        is_of(fault.field, "leader.resources") && (flag != "--master-gpu" || !reader.has(flag));
    if (!is_a_repetition && !unread.is_at_fault(flag)) reader.fault(flag, fault.what);
  }
}

}  // namespace muster::dialects::runai

#include "dialects/runai/claims.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "base/units.h"

namespace muster::dialects::runai {

namespace {

constexpr int64_t kLeastGpuMemory = 100'000'000;

/// The flag that was used of one that has two names.
std::string mig_flag(const cli::FlagReader& reader) {
  return reader.has("--mig-profile") ? "--mig-profile" : "--mig";
}

void exclude_each_other(cli::FlagReader& reader, job::Resources& resources) {
  const std::string mig = mig_flag(reader);
  const std::array<std::pair<std::string, std::string>, 3> pairs{
      {{"--gpu", "--gpu-memory"}, {"--gpu", mig}, {"--gpu-memory", mig}}};
  for (const auto& [one, other] : pairs) {
    if (!reader.has(one) || !reader.has(other)) continue;
    reader.fault("", "unexpected to accept both " + one.substr(2) + " and " + other.substr(2) +
                         " flag. please use only one of them");
    // So that nobody else finds fault with the pair.
    resources.gpu_memory_bytes = 0;
  }
}

void refuse_mig(cli::FlagReader& reader) {
  const std::string flag = mig_flag(reader);
  if (!reader.has(flag)) return;
  constexpr std::array<std::string_view, 5> kProfiles{"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb",
                                                      "7g.40gb"};
  const std::string profile = reader.text(flag);
  if (std::find(kProfiles.begin(), kProfiles.end(), profile) == kProfiles.end()) {
    return reader.fault("", "unsupported mig device: " + profile);
  }
  reader.fault(flag,
               "is not served here: GPUs are not cut into MIG devices; ask for a part of one with "
               "--gpu 0.5, or for memory of one with --gpu-memory");
}

void read_gpu_memory(cli::FlagReader& reader, job::Resources& resources) {
  if (!reader.has("--gpu-memory")) return;
  resources.gpu_memory_bytes = reader.bytes("--gpu-memory", kLeastGpuMemory);
  if (resources.gpu_memory_bytes >= kLeastGpuMemory) return;
  reader.fault("", "gpu memory must be greater than 100Mb");
}

/// One claim and its limit, both read already.
void settle(const std::string& flag, int64_t limit, cli::FlagReader& reader, int64_t& claim) {
  const std::string limit_flag = flag + "-limit";
  if (!reader.has(limit_flag)) return;
  if (!reader.has(flag)) {
    claim = limit;
  } else if (limit < claim && !reader.is_at_fault(limit_flag) && !reader.is_at_fault(flag)) {
    reader.fault(limit_flag, reader.text(limit_flag) + " is less than the " + reader.text(flag) +
                                 " of " + flag);
  }
}

}  // namespace

void read_gpus(const std::string& flag, cli::FlagReader& reader, job::Resources& resources) {
  if (!reader.has(flag)) return;
  const auto milli = base::parse_milli(reader.text(flag));
  const bool is_part = milli && *milli < 1000;
  const bool is_served =
      milli && (is_part || *milli % 1000 == 0) && *milli / 1000 <= std::numeric_limits<int>::max();
  if (!is_served) {
    return reader.fault(
        flag, "'" + reader.text(flag) + "' is neither a whole number nor a part of one, as 0.5");
  }
  resources.gpus = is_part ? 0 : static_cast<int>(*milli / 1000);
  resources.gpu_share_milli = is_part ? static_cast<int>(*milli) : 0;
  resources.gpu_memory_bytes = 0;
}

Claims read_claims(cli::FlagReader& reader, std::vector<std::string>& notes) {
  Claims claims;
  job::Resources& resources = claims.resources;
  read_gpus("--gpu", reader, resources);
  read_gpu_memory(reader, resources);
  exclude_each_other(reader, resources);
  refuse_mig(reader);
  resources.cpu_milli = reader.cpus("--cpu", 0);
  resources.memory_bytes = reader.bytes("--memory", 0);
  settle("--cpu", reader.cpus("--cpu-limit", 0), reader, resources.cpu_milli);
  settle("--memory", reader.bytes("--memory-limit", 0), reader, resources.memory_bytes);
  for (const std::string name : {"cpu-limit", "memory-limit"}) {
    const std::string flag = "--" + name;
    if (!reader.has(flag)) continue;
    claims.limits["runai/" + name] = reader.text(flag);
    const bool is_claimed = !reader.has(flag.substr(0, flag.find("-limit")));
    notes.push_back(flag + ": nothing holds a task to it" +
                    (is_claimed ? "; it is claimed, for want of a request" : ""));
  }
  return claims;
}

}  // namespace muster::dialects::runai

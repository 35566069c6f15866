#include "cli/amount_words.h"

#include <vector>

#include "job/units.h"

namespace muster::cli {

namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string claim_words(const job::Resources& resources) {
  std::vector<std::string> parts;
  if (resources.gpus > 0) parts.push_back(std::to_string(resources.gpus) + " GPU");
  if (resources.gpu_share_milli > 0) {
    parts.push_back(job::format_milli(resources.gpu_share_milli) + " GPU");
  }
  if (resources.gpu_memory_bytes > 0) {
    parts.push_back(job::format_bytes(resources.gpu_memory_bytes) + " of a GPU");
  }
  if (resources.cpu_milli > 0) parts.push_back(job::format_milli(resources.cpu_milli) + " CPU");
  if (resources.memory_bytes > 0) parts.push_back(job::format_bytes(resources.memory_bytes));
  return joined(parts);
}

}  // namespace

std::string amounts_words(std::optional<int64_t> gpu_milli, std::optional<int64_t> cpu_milli,
                          std::optional<int64_t> memory_bytes) {
  std::vector<std::string> parts{gpu_milli ? job::format_milli(*gpu_milli) + " GPU" : "unlimited"};
  if (cpu_milli) parts.push_back(job::format_milli(*cpu_milli) + " CPU");
  if (memory_bytes) parts.push_back(job::format_bytes(*memory_bytes));
  return joined(parts);
}

std::string needs_words(const job::JobSpec& spec) {
  std::string claim = claim_words(spec.resources);
  if (claim.empty()) return "-";
  if (spec.kind == job::Kind::kSingle) return claim;
  const int least = spec.scheduling.min_workers.value_or(spec.workers);
  const std::string range = least < spec.workers ? std::to_string(least) + "-" : "";
  return range + std::to_string(spec.workers) + " x " + claim;
}

}  // namespace muster::cli

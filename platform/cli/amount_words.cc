#include "cli/amount_words.h"

#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "job/elastic.h"
#include "job/job.h"

namespace muster::cli {

namespace {

std::string claim_words(const job::Resources& resources) {
  std::vector<std::string> parts;
  if (resources.gpus > 0) parts.push_back(std::to_string(resources.gpus) + " GPU");
  if (resources.gpu_share_milli > 0) {
    parts.push_back(base::format_milli(resources.gpu_share_milli) + " GPU");
  }
  if (resources.gpu_memory_bytes > 0) {
    parts.push_back(base::format_bytes(resources.gpu_memory_bytes) + " of a GPU");
  }
  if (resources.cpu_milli > 0) parts.push_back(base::format_milli(resources.cpu_milli) + " CPU");
  if (resources.memory_bytes > 0) parts.push_back(base::format_bytes(resources.memory_bytes));
  return base::joined(parts);
}

/// "2 x 1 GPU", "2-4 x 1 GPU"; empty where they claim nothing.
std::string workers_words(const job::JobSpec& spec) {
  const std::string claim = claim_words(spec.resources);
  if (claim.empty() || spec.workers == 0) return "";
  return worker_range(spec) + " x " + claim;
}

}  // namespace

std::string worker_range(const job::JobSpec& spec) {
  const std::string most = std::to_string(spec.workers);
  return job::is_elastic(spec) ? std::to_string(*spec.scheduling.min_workers) + "-" + most : most;
}

std::string amounts_words(std::optional<int64_t> gpu_milli, std::optional<int64_t> cpu_milli,
                          std::optional<int64_t> memory_bytes) {
  std::vector<std::string> parts{gpu_milli ? base::format_milli(*gpu_milli) + " GPU" : "unlimited"};
  if (cpu_milli) parts.push_back(base::format_milli(*cpu_milli) + " CPU");
  if (memory_bytes) parts.push_back(base::format_bytes(*memory_bytes));
  return base::joined(parts);
}

std::string needs_words(const job::JobSpec& spec) {
  std::string text =
      spec.kind == job::Kind::kSingle ? claim_words(spec.resources) : workers_words(spec);
  const auto add = [&text](const std::string& claim, const std::string& role) {
    if (!claim.empty()) text += (text.empty() ? "" : " + ") + claim + " (" + role + ")";
  };
  if (spec.kind != job::Kind::kSingle) {
    const job::Role leader = job::tasks_of(spec).front().role;
    add(claim_words(spec.leader.resources), std::string(job::to_string(leader)));
  }
  if (spec.parameter_servers > 0) {
    const std::string claim = claim_words(spec.parameter_server.resources);
    add(claim.empty() ? "" : std::to_string(spec.parameter_servers) + " x " + claim, "ps");
  }
  if (spec.evaluators > 0) add(claim_words(spec.evaluator.resources), "evaluator");
  return text.empty() ? "-" : text;
}

}  // namespace muster::cli

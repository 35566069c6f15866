#include "cli/slurm_flags.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::cli {

namespace {

constexpr std::array<std::pair<const char*, std::string job::SlurmSpec::*>, 5> kFields{
    {{"partition", &job::SlurmSpec::partition},
     {"account", &job::SlurmSpec::account},
     {"qos", &job::SlurmSpec::qos},
     {"reservation", &job::SlurmSpec::reservation},
     {"constraint", &job::SlurmSpec::constraint}}};

/// The Slurm job that a fact names; 0: none. A heterogeneous one goes by its leader's number.
uint64_t slurm_job_of(const job::Fact& fact) {
  if (const auto* const placed = std::get_if<job::Placed>(&fact)) return placed->slurm_job;
  if (const auto* const waits = std::get_if<job::SlurmWaits>(&fact)) return waits->slurm_job;
  if (const auto* const state = std::get_if<job::SlurmState>(&fact)) return state->slurm_job;
  return 0;
}

/// "job 17": the last that its events name.
std::string job_of(const std::vector<job::Event>& events) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    const uint64_t number = slurm_job_of(event->what);
    if (number != 0) return "job " + std::to_string(number);
  }
  return "";
}

}  // namespace

std::string slurm_words(const job::Job& job) {
  std::string words = job_of(job.events);
  for (const auto& [name, member] : kFields) {
    const std::string& value = job.spec.slurm.*member;
    if (!value.empty()) words += (words.empty() ? "" : ", ") + std::string(name) + " " + value;
  }
  return words;
}

}  // namespace muster::cli

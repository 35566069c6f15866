#include "cli/common/job_words.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

namespace muster::cli {

namespace {

void append_item(std::string& list, const std::string& separator, const std::string& item) {
  if (!item.empty()) list += (list.empty() ? "" : separator) + item;
}

}  // namespace

std::string launch_words(const job::Job& job) {
  if (!job.launch) return "";
  const job::LaunchFacts& facts = *job.launch;
  std::string words;
  if (facts.by != job::LaunchBy::kAuto) {
    words = "by " + std::string(job::to_string(facts.by));
    append_item(words, ": ", facts.why);
  }
  append_item(words, "; ", facts.mpi);
  return words;
}

std::string container_words(const job::ContainerSpec& container) {
  std::string words;
  if (container.pull != job::ContainerSpec().pull) {
    append_item(words, ", ", "image pulled " + std::string(job::to_string(container.pull)));
  }
  if (container.writable_root) append_item(words, ", ", "writable root");
  if (container.new_privileges) append_item(words, ", ", "new privileges");
  for (const std::string& name : container.capabilities) append_item(words, ", ", name);
  if (container.shm_bytes != 0) {
    append_item(words, ", ", base::format_bytes(container.shm_bytes) + " of /dev/shm");
  }
  return words;
}

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

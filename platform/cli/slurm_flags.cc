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

/// "job 17" of "waits in Slurm as job 17" and "placed on n1 (Slurm job 17)"; a heterogeneous one
/// goes by its leader's number.
std::string job_of(const std::vector<job::Event>& events) {
  constexpr std::string_view kDigits = "0123456789";
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    for (const std::string_view mark : {"(Slurm job ", "waits in Slurm as job "}) {
      const size_t at = event->text.find(mark);
      if (at == std::string::npos) continue;
      const size_t begin = at + mark.size();
      const size_t end =
          std::min(event->text.find_first_not_of(kDigits, begin), event->text.size());
      if (end > begin) return "job " + event->text.substr(begin, end - begin);
    }
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

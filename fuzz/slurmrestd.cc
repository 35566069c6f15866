// Answers of slurmrestd, in any version, its address, and the output of programs that print tokens.
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/slurm/rest_access.h"
#include "engine/slurm/rest_answer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::engine::slurm;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto jobs = read_rest_jobs(text, {.id = 0, .name = "root"});
  if (jobs) {
    for (const ListedJob& job : jobs->jobs) {
      if (job.id == 0 || job.restarts < 0) std::abort();
      if (job.may_start && job.state != JobState::kPending) std::abort();
    }
  }
  [[maybe_unused]] const auto past = read_rest_past_jobs(text);
  const auto nodes = read_rest_nodes(text);
  if (nodes) {
    for (const ListedNode& node : *nodes) {
      if (node.name.empty() || node.cpus < 0 || node.gpus < 0 || node.memory_bytes < 0)
        std::abort();
    }
  }
  for (const RestFault& fault : read_rest_faults(text)) {
    if (fault.text.find('\n') != std::string::npos) std::abort();
  }
  if (const auto paths = read_rest_paths(text)) {
    const RestInterface chosen = choose_interface(*paths);
    if (chosen && (chosen.version < kOldestRestVersion || chosen.submit.empty())) std::abort();
  }
  [[maybe_unused]] const auto submitted = read_rest_submitted(text);
  [[maybe_unused]] const auto ping = read_rest_ping(text);
  if (const auto endpoint = parse_rest_endpoint(text)) {
    const auto again = parse_rest_endpoint(to_string(*endpoint));
    if (!again || !(*again == *endpoint)) std::abort();
  }
  if (const auto token = token_of(text)) {
    if (token->empty()) std::abort();
    [[maybe_unused]] const auto end = end_of_token(*token);
  }
  return 0;
}

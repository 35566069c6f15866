// The output of Slurm's programs: the worst result is an error, and values are within their bounds.
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/node/slurm_step.h"
#include "engine/slurm/listing.h"
#include "engine/slurm/slurm_error.h"
#include "engine/slurm/slurm_words.h"

namespace {

using namespace muster::engine::slurm;

void check_jobs(const std::vector<ListedJob>& jobs) {
  for (const ListedJob& job : jobs) {
    if (job.exit_code < 0 && job.exit_signal < 0) std::abort();
    if (is_over(job.state) != is_over(job_state_of(job.state_text)) && !is_over(job.state) &&
        job.state != JobState::kCompleting) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto names = muster::engine::node::expand_nodes(text)) {
    if (names->size() > muster::engine::node::kMostNodes) std::abort();
    for (const std::string& name : *names) {
      if (name.empty()) std::abort();
    }
  }
  if (gpus_in(text).count < 0) std::abort();
  static_cast<void>(time_of(text));
  static_cast<void>(takes_jobs(text));
  static_cast<void>(explain_reason(text));
  static_cast<void>(refusal_of(text, {}));
  // Replaces characters, so that the input contains separators often.
  for (char& c : text) {
    if (c == '|') c = '\x1f';
  }
  if (const auto jobs = read_squeue(text)) check_jobs(*jobs);
  if (const auto jobs = read_sacct(text)) check_jobs(*jobs);
  if (const auto nodes = read_sinfo(text)) {
    for (const ListedNode& node : *nodes) {
      if (node.name.empty() || node.memory_bytes < 0) std::abort();
    }
  }
  return 0;
}

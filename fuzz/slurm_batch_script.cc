// Values of a job as options of a batch script: each value stays within its own line and its own
// quotes, or is rejected.
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/slurm/submission.h"

namespace {

using namespace muster::engine::slurm;

/// Reads a value in double quotes like sbatch. No text may follow the closing quote.
std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') std::abort();
  text = text.substr(1, text.size() - 2);
  std::string value;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') std::abort();
    if (text[i] == '\\' && ++i == text.size()) std::abort();
    value += text[i];
  }
  return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Submission submission;
  submission.script = "#!/bin/sh\nexec true\n";
  submission.components = {{.tasks = 2, .gpus_per_node = 1, .gpu_type = {}},
                           {.tasks = 1, .gpu_type = {}}};
  const auto plain = batch_script(submission);
  if (!plain) std::abort();
  submission.name = text;
  const auto named = batch_script(submission);
  if (!named || text.empty()) return 0;
  constexpr std::string_view kName = "#SBATCH --job-name=";
  size_t found = 0;
  std::string rest;
  for (size_t at = 0; at < named->size();) {
    const size_t end = named->find('\n', at) + 1;
    const std::string_view line = std::string_view(*named).substr(at, end - at);
    if (line.starts_with(kName)) {
      if (unquoted(line.substr(kName.size(), line.size() - kName.size() - 1)) != text) {
        std::abort();
      }
      ++found;
    } else {
      rest += line;
    }
    at = end;
  }
  if (found != submission.components.size() || rest != *plain) std::abort();
  return 0;
}

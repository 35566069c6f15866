// A job file: every fault is reported, and no file causes a crash. An accepted file can be
// validated.
#include <string_view>

#include "cli/spec/spec_file.h"
#include "job/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = muster::cli::spec::parse_spec_file(text, "job.yaml", {.folder = "/"});
  if (spec && !muster::job::validate(*spec).empty()) __builtin_trap();
  return 0;
}

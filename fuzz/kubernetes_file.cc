// A job file of Kubernetes: every fault is reported, and no file causes a crash or an invalid
// translation.
#include <string_view>

#include "base/fake_random.h"
#include "config/yaml.h"
#include "dialects/kubernetes/kubernetes.h"
#include "job/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto documents = muster::config::parse_yaml_documents(text);
  if (!documents) return 0;
  muster::base::FakeRandom random;
  muster::job::JobSpec defaults;
  defaults.folder = "/";
  const auto translation = muster::dialects::kubernetes::translate(
      *documents, "job.yaml", {.defaults = defaults, .name = "", .settings = {}, .random = random});
  if (!translation) {
    if (translation.error().faults.empty()) __builtin_trap();
    return 0;
  }
  if (translation->jobs.empty()) __builtin_trap();
  for (const auto& job : translation->jobs) {
    if (!muster::job::validate(job.spec).empty()) __builtin_trap();
  }
  return 0;
}

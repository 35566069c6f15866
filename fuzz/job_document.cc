// A job as the database stores it: a damaged row is an error, never a crash.
#include <cstdlib>
#include <string_view>

#include "store/records.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const auto job = store::from_document<job::Job>({reinterpret_cast<const char*>(data), size});
  if (!job) return 0;
  const auto again = store::from_document<job::Job>(store::to_document(*job));
  if (!again || *again != *job) std::abort();
  return 0;
}

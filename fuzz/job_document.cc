// A job as the database keeps it: a damaged row is an error, never a crash.
#include "store/document.h"

#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::store;
  const auto job = from_document<job::Job>({reinterpret_cast<const char*>(data), size});
  if (!job) return 0;
  const auto again = from_document<job::Job>(to_document(*job));
  if (!again || *again != *job) std::abort();
  return 0;
}

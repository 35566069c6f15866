#include "parameter_server/buffers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace muster::parameter_server {
namespace {

// What of it cannot be in such pages stays in others, and so does all where there are none.
void prefer_huge_pages(void* memory, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + bytes) / page * page;
  if (first >= last) return;
  ::madvise(static_cast<std::byte*>(memory) + (first - begin), last - first, MADV_HUGEPAGE);
}

}  // namespace

std::vector<float> zeros(std::size_t count) {
  std::vector<float> values;
  values.reserve(count);
  // Before the first write to it, which is when the system chooses.
  prefer_huge_pages(values.data(), count * sizeof(float));
  values.resize(count);
  return values;
}

}  // namespace muster::parameter_server

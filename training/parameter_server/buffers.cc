#include "parameter_server/buffers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace muster::parameter_server {
namespace {

// Parts that do not fill a huge page stay in ordinary pages, as does everything on systems without
// huge pages.
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
  // Comes before the first write, at which the system chooses the page size.
  prefer_huge_pages(values.data(), count * sizeof(float));
  values.resize(count);
  return values;
}

}  // namespace muster::parameter_server

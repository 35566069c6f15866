// The heads of frames on a bulk connection: an accepted head keeps the limits that its receiver relies
// on, and is the only encoding of its content.
#include <algorithm>
#include <cstdlib>

#include "parameter_server/bulk_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::parameter_server;
  if (size < kBulkHeadBytes) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).first<kBulkHeadBytes>();
  const auto head = decode_bulk_head(bytes);
  if (!head) return 0;
  if (head->message_bytes > kMostBulkMessageBytes || head->value_bytes % sizeof(float) != 0) {
    std::abort();
  }
  if (!std::ranges::equal(encode(*head), bytes)) std::abort();
  return 0;
}

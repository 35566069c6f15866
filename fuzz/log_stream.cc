// The frames of a stream of logs, as a client takes them apart, cut anywhere.
#include "api/log_stream.h"

#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  size_t bytes = 0;
  const auto count = [&](std::string_view text) {
    bytes += text.size();
    return true;
  };
  api::LogStreamDecoder decoder(
      {.on_record = [&](const job::LogRecord& record) { return count(record.text); },
       .on_place = count,
       .on_end = count});
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t cut = size == 0 ? 0 : data[0] % size;
  for (const std::string_view piece : {all.substr(0, cut), all.substr(cut)}) {
    const auto more = decoder.put(piece);
    if (!more || !*more) break;
  }
  if (bytes > size) __builtin_trap();
  return 0;
}

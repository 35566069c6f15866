// What the remote shell reads of others: before they have shown the key, and after.
#include <algorithm>
#include <string_view>

#include "engine/rsh/hosts.h"
#include "engine/rsh/secure_channel.h"
#include "engine/rsh/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::engine::rsh;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  FrameReader reader;
  const size_t piece = size % 7 + 1;
  for (size_t at = 0; at < size; at += piece) {
    reader.add(text.substr(at, piece));
    while (true) {
      const auto frame = reader.next();
      if (!frame || !*frame) break;
    }
  }
  [[maybe_unused]] const auto hosts = read_hosts(text);
  SecureChannel stranger(End::kFar, Key{});
  [[maybe_unused]] const auto received = stranger.receive(text);
  return 0;
}

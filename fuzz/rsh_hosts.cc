// Bytes that the remote shell reads before the other end has proved that it holds the key, and its
// list of hosts.
#include <string_view>

#include "engine/rsh/arguments.h"
#include "engine/rsh/secure_channel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::engine::rsh;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  [[maybe_unused]] const auto hosts = read_hosts(text);
  SecureChannel stranger(End::kFar, Key{});
  [[maybe_unused]] const auto received = stranger.receive(text);
  return 0;
}

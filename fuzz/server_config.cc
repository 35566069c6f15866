// The configuration of a server: every fault is reported, and no text causes a crash.
#include "config/server_config.h"

#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  [[maybe_unused]] const auto options =
      muster::config::parse_server_config(text, "muster.yaml", "/", true);
  return 0;
}

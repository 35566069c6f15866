// Files that a shim reads and writes in its task's folder, and messages on its socket there.
#include <string_view>

#include "engine/shim/attachments.h"
#include "engine/shim/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::engine;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  [[maybe_unused]] const auto plan = decode_shim_plan(text);
  [[maybe_unused]] const auto inner = decode_inner_plan(text);
  [[maybe_unused]] const auto running = decode_running(text);
  [[maybe_unused]] const auto exit = decode_exit(text);
  [[maybe_unused]] const auto attach = decode_attach(text);
  return 0;
}

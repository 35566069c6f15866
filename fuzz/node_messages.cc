// What the server reads of the programs on Slurm's nodes, and they of it: before they have shown
// the key, and after.
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/plain_cbor.h"
#include "engine/slurm/node_brief.h"
#include "engine/slurm/node_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  using namespace muster::engine;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  [[maybe_unused]] const bool plain = is_plain_cbor(text);
  [[maybe_unused]] const auto caller = slurm::decode_caller(text);
  [[maybe_unused]] const auto brief = slurm::decode_node_brief(text);
  [[maybe_unused]] const auto callback = slurm::decode_callback(text);
  if (text.empty()) return 0;
  const auto message = slurm::decode_node(text.front(), text.substr(1));
  if (message) {
    const std::string frame = slurm::encode_node(*message);
    const auto again =
        slurm::decode_node(frame.front(), std::string_view(frame).substr(base::kFrameHead));
    if (!again || again->index() != message->index()) std::abort();
  }
  return 0;
}

// Messages between the server and the programs on Slurm's nodes, in both directions, before the
// sender has proved that it holds the key, and after.
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/node/brief.h"
#include "engine/node/messages.h"
#include "engine/plain_cbor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  using namespace muster::engine;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  [[maybe_unused]] const bool plain = is_plain_cbor(text);
  [[maybe_unused]] const auto caller = node::decode_caller(text);
  [[maybe_unused]] const auto brief = node::decode_node_brief(text);
  [[maybe_unused]] const auto callback = node::decode_callback(text);
  if (text.empty()) return 0;
  const auto message = node::decode_node(text.front(), text.substr(1));
  if (message) {
    const std::string frame = node::encode_node(*message);
    const auto again =
        node::decode_node(frame.front(), std::string_view(frame).substr(base::kFrameHead));
    if (!again || again->index() != message->index()) std::abort();
  }
  return 0;
}

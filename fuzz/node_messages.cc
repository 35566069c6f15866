// What the server reads of the programs on Slurm's nodes, and they of it: before they have shown
// the key, and after.
#include <cstdlib>
#include <string_view>

#include "engine/plain_cbor.h"
#include "engine/slurm/node_brief.h"
#include "engine/slurm/node_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::engine;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  [[maybe_unused]] const bool plain = is_plain_cbor(text);
  [[maybe_unused]] const auto caller = slurm::decode_caller(text);
  [[maybe_unused]] const auto brief = slurm::decode_node_brief(text);
  [[maybe_unused]] const auto callback = slurm::decode_callback(text);
  const auto message = slurm::decode_node(text);
  if (message) {
    const auto again = slurm::decode_node(slurm::encode_node(*message).substr(sizeof(uint32_t)));
    if (!again || again->index() != message->index()) std::abort();
  }
  slurm::NodeReader reader;
  const size_t piece = size % 7 + 1;
  for (size_t at = 0; at < size; at += piece) {
    reader.add(text.substr(at, piece));
    for (auto next = reader.next(); next && *next; next = reader.next()) continue;
  }
  return 0;
}

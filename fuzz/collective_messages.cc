// The header of a call, a hand-over to the coordinator of a session, and its record. Encoding and
// decoding a decoded message gives the same message.
#include <cstdlib>
#include <cstring>

#include "call/call.h"
#include "session/protocol.h"

namespace {

using namespace muster::collective;

void read_call(ByteView bytes) {
  CallHeader header = {};
  if (bytes.size() < header.size()) return;
  std::memcpy(header.data(), bytes.data(), header.size());
  const std::optional<Call> call = decode(header);
  if (!call) return;
  static_cast<void>(to_string(*call));
  if (signature_of(*call) == 0) std::abort();
  // Unused bytes are zero from here on.
  const CallHeader first = encode(*call);
  const std::optional<Call> again = decode(first);
  if (!again || encode(*again) != first || signature_of(*again) != signature_of(*call))
    std::abort();
}

// Encodes and decodes until the bytes must not change any more.
void read_record(ByteView bytes) {
  const std::optional<session::Record> record = session::decode_record(bytes);
  if (!record) return;
  const Bytes first = session::encode(*record);
  const std::optional<session::Record> again = session::decode_record(first);
  if (!again || session::encode(*again) != first) std::abort();
}

void read_hand_over(ByteView bytes) {
  const std::optional<session::HandOver> message = session::decode_hand_over(bytes);
  if (!message) return;
  const auto* const news = std::get_if<session::New>(&*message);
  if (news == nullptr) return;
  const Bytes first = session::encode_new(news->name, news->request);
  const std::optional<session::HandOver> again = session::decode_hand_over(first);
  if (!again) std::abort();
  const auto& same = std::get<session::New>(*again);
  if (session::encode_new(same.name, same.request) != first) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteView bytes = std::as_bytes(std::span(data, size));
  read_call(bytes);
  read_record(bytes);
  read_hand_over(bytes);
  static_cast<void>(session::is_batch(bytes));
  return 0;
}

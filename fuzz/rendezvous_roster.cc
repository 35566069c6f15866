// Bytes that a rank reads from rank 0 at the rendezvous. The first byte determines whether they
// arrive as they are, or as the payload of a peer that holds the key. An accepted roster belongs to
// this world.
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdlib>

#include "bootstrap/rendezvous.h"
#include "transport/socket.h"

namespace {

using namespace muster::collective;

constexpr int kRanks = 3;

Handshake handshake() {
  return {Bytes(kShortestKeyBytes, std::byte{7}), Purpose::kRendezvous, Nonce{std::byte{1}},
          Nonce{std::byte{2}}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::array<int, 2> ends = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return 0;
  }
  Descriptor rank0(ends[0]);
  const Descriptor guest(ends[1]);
  const Deadline soon = Clock::now() + std::chrono::seconds(5);
  const ByteView bytes = std::as_bytes(std::span(data + 1, size - 1));
  const bool holds_the_key = data[0] % 2 == 1;
  const Bytes message =
      holds_the_key ? handshake().seal("host", bytes) : Bytes(bytes.begin(), bytes.end());
  static_cast<void>(send_all(rank0, message, soon));
  rank0.close();
  const Result<Roster> roster =
      receive_roster(guest, handshake(), {.rank = 1, .size = kRanks, .host = "host"}, soon);
  if (roster && (!holds_the_key || roster->members.size() != kRanks)) std::abort();
  if (!roster) static_cast<void>(roster.error().to_string());
  return 0;
}

// Both sides of a handshake, each with a peer without the key that sends any bytes in pieces: from
// the start, after a valid handshake, and after a valid opening. Only a peer that holds the key is
// accepted.
#include <algorithm>
#include <cstdlib>

#include "bootstrap/handshake.h"

namespace {

using namespace muster::collective;

const Bytes& key() {
  static const Bytes kKey(kShortestKeyBytes, std::byte{7});
  return kKey;
}

// Feeds the missing bytes in pieces of at most `piece` bytes and returns the last verdict. Side:
// ClientHandshake or ServerHandshake.
template <typename Side>
Side::Verdict feed(Side& side, ByteView& bytes, std::size_t piece) {
  auto verdict = Side::Verdict::kMore;
  while (verdict == Side::Verdict::kMore) {
    const std::size_t missing = side.missing_bytes();
    if (missing == 0) std::abort();
    const std::size_t count = std::min({missing, piece, bytes.size()});
    if (count == 0) break;
    verdict = side.take(bytes.first(count));
    bytes = bytes.subspan(count);
  }
  return verdict;
}

ClientHandshake caller(const RankIdentity& who) {
  return ClientHandshake(key(), Purpose::kControl, Nonce{std::byte{1}}, who);
}

void receive(ByteView bytes, std::size_t piece, bool has_begun) {
  ServerHandshake host(key(), Nonce{std::byte{2}});
  if (has_begun) {
    const Bytes opening = caller({}).to_send();
    ByteView rest = opening;
    feed(host, rest, piece);
  }
  if (feed(host, bytes, piece) == ServerHandshake::Verdict::kWelcome) std::abort();
  static_cast<void>(host.reply());
}

void approach(ByteView bytes, std::size_t piece) {
  ClientHandshake guest = caller({.rank = 1, .size = 2, .host = "host"});
  static_cast<void>(guest.to_send());
  if (feed(guest, bytes, piece) == ClientHandshake::Verdict::kIntroduced) std::abort();
}

// A peer that holds the key, and introduces itself with these bytes.
void introduce(ByteView bytes, std::size_t piece) {
  ClientHandshake guest = caller({});
  ServerHandshake host(key(), Nonce{std::byte{2}});
  const Bytes opening = guest.to_send();
  ByteView rest = opening;
  feed(host, rest, piece);
  const Bytes challenge = host.reply();
  rest = challenge;
  if (feed(guest, rest, piece) != ClientHandshake::Verdict::kIntroduced) std::abort();
  const Bytes sealed = guest.handshake().seal("caller", bytes);
  rest = sealed;
  if (feed(host, rest, piece) == ServerHandshake::Verdict::kWelcome) {
    static_cast<void>(host.introduction().name());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0];
  const ByteView bytes = std::as_bytes(std::span(data + 1, size - 1));
  const ByteView words = view_of("MUSTERCO");
  Bytes in_our_words(words.begin(), words.end());
  in_our_words.insert(in_our_words.end(), bytes.begin(), bytes.end());
  receive(bytes, piece, false);
  receive(in_our_words, piece, false);
  receive(bytes, piece, true);
  approach(bytes, piece);
  approach(in_our_words, piece);
  introduce(bytes, piece);
  return 0;
}

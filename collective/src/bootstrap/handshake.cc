#include "bootstrap/handshake.h"

#include <algorithm>
#include <array>
#include <optional>

#include "transport/socket.h"

namespace muster::collective {
namespace {

constexpr std::string_view kHandshakeMagic = "MUSTERCO";
constexpr std::size_t kHelloBytes = 8 + 2 + 2 + kNonceBytes;
constexpr std::size_t kChallengeBytes = kHelloBytes + kDigestBytes;
constexpr std::size_t kSealHeadBytes = 4 + kDigestBytes;
constexpr std::size_t kLongestIntroduction = 2048;
constexpr std::string_view kHostLabel = "host";
constexpr std::string_view kCallerLabel = "caller";

// The part that the opening and the challenge have in common.
struct Hello {
  bool is_ours = false;
  std::uint16_t version = 0;
  Purpose purpose = {};
  Nonce nonce = {};
};

Bytes encode_hello(Purpose purpose, const Nonce& nonce) {
  return ByteWriter()
      .raw(view_of(kHandshakeMagic))
      .number(kProtocolVersion)
      .number(static_cast<std::uint16_t>(purpose))
      .raw(nonce)
      .take();
}

Hello decode_hello(ByteReader& reader) {
  Hello hello;
  hello.is_ours = std::ranges::equal(reader.raw(kHandshakeMagic.size()), view_of(kHandshakeMagic));
  hello.version = reader.number<std::uint16_t>();
  hello.purpose = Purpose{reader.number<std::uint16_t>()};
  const ByteView nonce = reader.raw(kNonceBytes);
  std::ranges::copy(nonce, hello.nonce.begin());
  return hello;
}

std::string_view at_most_255(std::string_view text) {
  return text.substr(0, 255);
}

Bytes encode_introduction(const RankIdentity& who) {
  return ByteWriter()
      .number(static_cast<std::int32_t>(who.rank))
      .number(static_cast<std::int32_t>(who.size))
      .text(at_most_255(who.host))
      .text(at_most_255(who.endpoint))
      .text(at_most_255(who.local_endpoint))
      .text(at_most_255(who.host_id))
      .number(who.arena_bytes)
      .number(static_cast<std::int32_t>(who.index))
      .take();
}

std::optional<RankIdentity> decode_introduction(ByteView bytes) {
  ByteReader reader(bytes);
  RankIdentity who;
  who.rank = reader.number<std::int32_t>();
  who.size = reader.number<std::int32_t>();
  who.host = reader.text();
  who.endpoint = reader.text();
  who.local_endpoint = reader.text();
  who.host_id = reader.text();
  who.arena_bytes = reader.number<std::uint64_t>();
  who.index = reader.number<std::int32_t>();
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  return who;
}

std::string other_version(std::uint16_t theirs) {
  return "it speaks version " + std::to_string(theirs) + " of the protocol, not " +
         std::to_string(kProtocolVersion);
}

}  // namespace

Digest Handshake::mac(std::string_view label, ByteView payload) const {
  const auto number = static_cast<std::uint16_t>(purpose);
  return hmac(key, {view_of(label), std::as_bytes(std::span(&number, 1)), caller, host, payload});
}

Bytes Handshake::seal(std::string_view label, ByteView payload) const {
  return ByteWriter()
      .number(static_cast<std::uint32_t>(payload.size()))
      .raw(mac(label, payload))
      .raw(payload)
      .take();
}

ClientHandshake::ClientHandshake(const Bytes& key, Purpose purpose, const Nonce& nonce,
                                 const RankIdentity& who)
    : handshake_{key, purpose, nonce, {}},
      introduction_(encode_introduction(who)),
      to_send_(encode_hello(purpose, nonce)) {}

std::size_t ClientHandshake::missing_bytes() const {
  return kChallengeBytes - received_.size();
}

ClientHandshake::Verdict ClientHandshake::take(ByteView bytes) {
  received_.insert(received_.end(), bytes.begin(), bytes.end());
  if (received_.size() < kChallengeBytes) return Verdict::kMore;
  ByteReader reader(received_);
  const Hello hello = decode_hello(reader);
  if (!hello.is_ours) {
    return refuse(
        {ErrorCode::kMismatch, "the program that listens there is not a rank of this library"});
  }
  if (hello.version != kProtocolVersion) {
    return refuse({ErrorCode::kMismatch, other_version(hello.version)});
  }
  handshake_.host = hello.nonce;
  if (!equal_in_constant_time(handshake_.mac(kHostLabel, {}), reader.raw(kDigestBytes))) {
    return refuse({ErrorCode::kAuthentication, "the two ranks hold different keys",
                   "MUSTER_RENDEZVOUS_KEY must be the same on all ranks of a job"});
  }
  to_send_ = handshake_.seal(kCallerLabel, introduction_);
  return Verdict::kIntroduced;
}

ClientHandshake::Verdict ClientHandshake::refuse(Error error) {
  error_ = std::move(error);
  return Verdict::kRefused;
}

Result<Handshake> introduce(const Descriptor& socket, const Bytes& key, Purpose purpose,
                            const RankIdentity& who, Deadline deadline, int cancel) {
  Nonce nonce;
  if (Status filled = fill_random(nonce); !filled) return filled.error();
  ClientHandshake approach(key, purpose, nonce, who);
  if (Status sent = send_all(socket, approach.to_send(), deadline); !sent) return sent.error();
  Bytes challenge(approach.missing_bytes());
  if (Status got = receive_all(socket, challenge, deadline, cancel); !got) return got.error();
  if (approach.take(challenge) != ClientHandshake::Verdict::kIntroduced) return approach.error();
  if (Status sent = send_all(socket, approach.to_send(), deadline); !sent) return sent.error();
  return approach.handshake();
}

Result<Bytes> receive_sealed(const Descriptor& socket, const Handshake& handshake,
                             std::string_view label, std::size_t limit, Deadline deadline,
                             int cancel) {
  std::array<std::byte, kSealHeadBytes> head;
  if (Status got = receive_all(socket, head, deadline, cancel); !got) return got.error();
  ByteReader reader(head);
  const std::size_t length = reader.number<std::uint32_t>();
  const Error broken{ErrorCode::kAuthentication, "its answer is not sealed with the job's key"};
  if (length > limit) return broken;
  Bytes payload(length);
  if (Status got = receive_all(socket, payload, deadline, cancel); !got) return got.error();
  if (!equal_in_constant_time(handshake.mac(label, payload), reader.raw(kDigestBytes))) {
    return broken;
  }
  return payload;
}

ServerHandshake::ServerHandshake(const Bytes& key, const Nonce& nonce)
    : handshake_{key, {}, {}, nonce}, expected_bytes_(kHelloBytes) {}

ServerHandshake::Verdict ServerHandshake::take(ByteView bytes) {
  received_.insert(received_.end(), bytes.begin(), bytes.end());
  // One wrong byte is enough to reject a stranger: a port scanner or a browser may never send 44
  // bytes.
  const std::size_t seen = std::min(received_.size(), kHandshakeMagic.size());
  if (stage_ == Stage::kOpening && !std::ranges::equal(ByteView(received_).first(seen),
                                                       view_of(kHandshakeMagic.substr(0, seen)))) {
    return stranger("it does not speak this protocol");
  }
  if (received_.size() < expected_bytes_) return Verdict::kMore;
  if (stage_ == Stage::kOpening) return take_opening();
  if (stage_ == Stage::kHead) return take_head();
  return take_payload();
}

ServerHandshake::Verdict ServerHandshake::take_opening() {
  ByteReader reader(received_);
  const Hello hello = decode_hello(reader);
  handshake_.purpose = hello.purpose;
  handshake_.caller = hello.nonce;
  // A peer of another version gets a challenge too, so that it can report the mismatch.
  reply_ = ByteWriter()
               .raw(encode_hello(hello.purpose, handshake_.host))
               .raw(handshake_.mac(kHostLabel, {}))
               .take();
  if (hello.version != kProtocolVersion) return stranger(other_version(hello.version));
  expect(Stage::kHead, kSealHeadBytes);
  return Verdict::kMore;
}

ServerHandshake::Verdict ServerHandshake::take_head() {
  ByteReader reader(received_);
  const std::size_t length = reader.number<std::uint32_t>();
  std::ranges::copy(reader.raw(kDigestBytes), claimed_.begin());
  if (length == 0 || length > kLongestIntroduction) {
    return stranger("its introduction claims to be " + std::to_string(length) + " bytes long");
  }
  expect(Stage::kPayload, length);
  return Verdict::kMore;
}

ServerHandshake::Verdict ServerHandshake::take_payload() {
  if (!equal_in_constant_time(handshake_.mac(kCallerLabel, received_), claimed_)) {
    return stranger("it holds another key");
  }
  std::optional<RankIdentity> who = decode_introduction(received_);
  if (!who) return stranger("its introduction is invalid");
  introduction_ = *std::move(who);
  expected_bytes_ = 0;
  received_.clear();
  return Verdict::kWelcome;
}

ServerHandshake::Verdict ServerHandshake::stranger(std::string reason) {
  reason_ = std::move(reason);
  return Verdict::kStranger;
}

void ServerHandshake::expect(Stage stage, std::size_t bytes) {
  stage_ = stage;
  expected_bytes_ = bytes;
  received_.clear();
}

}  // namespace muster::collective

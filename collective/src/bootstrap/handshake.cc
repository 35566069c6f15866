#include "bootstrap/handshake.h"

#include <algorithm>
#include <array>

#include "transport/socket.h"

namespace muster::collective {
namespace {

constexpr std::string_view kMagic = "MUSTERCO";
constexpr std::size_t kHelloBytes = 8 + 2 + 2 + kNonceBytes;
constexpr std::size_t kChallengeBytes = kHelloBytes + kDigestBytes;
constexpr std::size_t kSealHeadBytes = 4 + kDigestBytes;
constexpr std::size_t kLongestIntroduction = 1024;
constexpr std::string_view kHostLabel = "host";
constexpr std::string_view kCallerLabel = "caller";

// The part that the opening and the challenge have in common.
struct Hello {
  bool is_ours = false;
  std::uint16_t version = 0;
  Purpose purpose = {};
  Nonce nonce = {};
};

Bytes encode(Purpose purpose, const Nonce& nonce) {
  return ByteWriter()
      .raw(view_of(kMagic))
      .number(kProtocolVersion)
      .number(static_cast<std::uint16_t>(purpose))
      .raw(nonce)
      .take();
}

Hello decode_hello(ByteReader& reader) {
  Hello hello;
  hello.is_ours = std::ranges::equal(reader.raw(kMagic.size()), view_of(kMagic));
  hello.version = reader.number<std::uint16_t>();
  hello.purpose = Purpose{reader.number<std::uint16_t>()};
  const ByteView nonce = reader.raw(kNonceBytes);
  std::ranges::copy(nonce, hello.nonce.begin());
  return hello;
}

Bytes encode(const Introduction& who) {
  return ByteWriter()
      .number(static_cast<std::int32_t>(who.rank))
      .number(static_cast<std::int32_t>(who.size))
      .text(std::string_view(who.host).substr(0, 255))
      .text(std::string_view(who.endpoint).substr(0, 255))
      .take();
}

std::string other_version(std::uint16_t theirs) {
  return "it speaks version " + std::to_string(theirs) + " of the protocol, not " +
         std::to_string(kProtocolVersion);
}

}  // namespace

Digest Session::mac(std::string_view label, ByteView payload) const {
  const auto number = static_cast<std::uint16_t>(purpose);
  return hmac(key, {view_of(label), std::as_bytes(std::span(&number, 1)), caller, host, payload});
}

Bytes Session::seal(std::string_view label, ByteView payload) const {
  return ByteWriter()
      .number(static_cast<std::uint32_t>(payload.size()))
      .raw(mac(label, payload))
      .raw(payload)
      .take();
}

Result<Session> introduce(const Descriptor& socket, const Bytes& key, Purpose purpose,
                          const Introduction& who, Deadline deadline) {
  Session session{key, purpose, {}, {}};
  if (Status filled = fill_random(session.caller); !filled) return filled.error();
  if (Status sent = send_all(socket, encode(purpose, session.caller), deadline); !sent) {
    return sent.error();
  }
  std::array<std::byte, kChallengeBytes> challenge;
  if (Status got = receive_all(socket, challenge, deadline); !got) return got.error();
  ByteReader reader(challenge);
  const Hello hello = decode_hello(reader);
  if (!hello.is_ours) {
    return Error{ErrorCode::kMismatch, "what listens there is not a rank of this library"};
  }
  if (hello.version != kProtocolVersion) {
    return Error{ErrorCode::kMismatch, other_version(hello.version)};
  }
  session.host = hello.nonce;
  if (!equal_in_constant_time(session.mac(kHostLabel, {}), reader.raw(kDigestBytes))) {
    return Error{ErrorCode::kAuthentication, "the two hold different keys",
                 "MUSTER_RENDEZVOUS_KEY has to be the same on all ranks of a job"};
  }
  if (Status sent = send_all(socket, session.seal(kCallerLabel, encode(who)), deadline); !sent) {
    return sent.error();
  }
  return session;
}

Result<Bytes> receive_sealed(const Descriptor& socket, const Session& session,
                             std::string_view label, std::size_t limit, Deadline deadline) {
  std::array<std::byte, kSealHeadBytes> head;
  if (Status got = receive_all(socket, head, deadline); !got) return got.error();
  ByteReader reader(head);
  const std::size_t length = reader.number<std::uint32_t>();
  const Error broken{ErrorCode::kAuthentication, "its answer does not carry the seal of the key"};
  if (length > limit) return broken;
  Bytes payload(length);
  if (Status got = receive_all(socket, payload, deadline); !got) return got.error();
  if (!equal_in_constant_time(session.mac(label, payload), reader.raw(kDigestBytes))) {
    return broken;
  }
  return payload;
}

Reception::Reception(const Bytes& key, const Nonce& nonce)
    : session_{key, {}, {}, nonce}, wanted_(kHelloBytes) {}

Reception::Verdict Reception::take(ByteView bytes) {
  received_.insert(received_.end(), bytes.begin(), bytes.end());
  // A wrong first byte is enough: a port scanner or a browser need not send 44 of them.
  const std::size_t seen = std::min(received_.size(), kMagic.size());
  if (stage_ == Stage::kOpening &&
      !std::ranges::equal(ByteView(received_).first(seen), view_of(kMagic.substr(0, seen)))) {
    return stranger("it does not speak this protocol");
  }
  if (received_.size() < wanted_) return Verdict::kMore;
  if (stage_ == Stage::kOpening) return take_opening();
  if (stage_ == Stage::kHead) return take_head();
  return take_payload();
}

Reception::Verdict Reception::take_opening() {
  ByteReader reader(received_);
  const Hello hello = decode_hello(reader);
  session_.purpose = hello.purpose;
  session_.caller = hello.nonce;
  // Another version is answered too, so that the caller can say what the matter is.
  reply_ = ByteWriter()
               .raw(encode(hello.purpose, session_.host))
               .raw(session_.mac(kHostLabel, {}))
               .take();
  if (hello.version != kProtocolVersion) return stranger(other_version(hello.version));
  expect(Stage::kHead, kSealHeadBytes);
  return Verdict::kMore;
}

Reception::Verdict Reception::take_head() {
  ByteReader reader(received_);
  const std::size_t length = reader.number<std::uint32_t>();
  std::ranges::copy(reader.raw(kDigestBytes), claimed_.begin());
  if (length == 0 || length > kLongestIntroduction) {
    return stranger("its introduction claims to be " + std::to_string(length) + " bytes long");
  }
  expect(Stage::kPayload, length);
  return Verdict::kMore;
}

Reception::Verdict Reception::take_payload() {
  if (!equal_in_constant_time(session_.mac(kCallerLabel, received_), claimed_)) {
    return stranger("it holds another key");
  }
  ByteReader reader(received_);
  introduction_.rank = reader.number<std::int32_t>();
  introduction_.size = reader.number<std::int32_t>();
  introduction_.host = reader.text();
  introduction_.endpoint = reader.text();
  if (!reader.ok()) return stranger("its introduction is cut off");
  wanted_ = 0;
  received_.clear();
  return Verdict::kWelcome;
}

Reception::Verdict Reception::stranger(std::string reason) {
  reason_ = std::move(reason);
  return Verdict::kStranger;
}

void Reception::expect(Stage stage, std::size_t bytes) {
  stage_ = stage;
  wanted_ = bytes;
  received_.clear();
}

}  // namespace muster::collective

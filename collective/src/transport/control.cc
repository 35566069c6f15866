#include "transport/control.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "transport/socket.h"

namespace muster::collective {
namespace {

constexpr std::uint32_t kMagic = 0x5443534d;  // "MSCT"
constexpr std::size_t kHeadBytes = 12;
constexpr std::size_t kLargestBody = 4096;
// Three texts of this length and the numbers stay below kLargestBody.
constexpr std::size_t kLongestText = 1300;

Bytes encode(const ControlMessage& message) {
  Bytes body;
  if (message.kind == ControlKind::kAbort) {
    const Error& cause = message.cause;
    body = ByteWriter()
               .number(static_cast<std::uint32_t>(cause.code))
               .number(static_cast<std::int32_t>(cause.rank))
               .text(std::string_view(cause.host).substr(0, kLongestText))
               .text(std::string_view(cause.message).substr(0, kLongestText))
               .text(std::string_view(cause.advice).substr(0, kLongestText))
               .take();
  }
  return ByteWriter()
      .number(kMagic)
      .number(static_cast<std::uint16_t>(message.kind))
      .number(std::uint16_t{0})
      .number(static_cast<std::uint32_t>(body.size()))
      .raw(body)
      .take();
}

Error decode_cause(ByteReader& reader) {
  Error cause;
  cause.code = static_cast<ErrorCode>(reader.number<std::uint32_t>());
  cause.rank = reader.number<std::int32_t>();
  cause.host = reader.text();
  cause.message = reader.text();
  cause.advice = reader.text();
  return cause;
}

}  // namespace

void ControlChannel::send(const ControlMessage& message) {
  static_cast<void>(send_some(socket_, encode(message)));
}

void ControlChannel::finish_sending() {
  ::shutdown(socket_.get(), SHUT_WR);
}

ControlChannel::Event ControlChannel::next() {
  for (;;) {
    std::size_t wanted = kHeadBytes;
    ControlMessage message{};
    if (received_.size() >= kHeadBytes) {
      ByteReader reader(received_);
      const bool ours = reader.number<std::uint32_t>() == kMagic;
      message.kind = static_cast<ControlKind>(reader.number<std::uint16_t>());
      reader.raw(2);
      const auto length = reader.number<std::uint32_t>();
      if (!ours || length > kLargestBody) return Ended{EPROTO};
      wanted += length;
      if (received_.size() == wanted) {
        if (message.kind == ControlKind::kAbort) message.cause = decode_cause(reader);
        received_.clear();
        return reader.ok() ? Event(std::move(message)) : Event(Ended{EPROTO});
      }
    }
    std::array<std::byte, kHeadBytes + kLargestBody> buffer;
    const Transfer got = receive_some(socket_, std::span(buffer).first(wanted - received_.size()));
    if (got.outcome == Transfer::Outcome::kEnded) return Ended{got.reason};
    if (got.outcome == Transfer::Outcome::kWouldBlock) return Nothing{};
    received_.insert(received_.end(), buffer.begin(), buffer.begin() + got.bytes);
  }
}

}  // namespace muster::collective

#include "engine/rsh/wire.h"

#include <utility>

#include "base/bytes.h"

namespace muster::engine::rsh {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr size_t kNumber = 4;

std::string number(uint32_t value) {
  std::string bytes;
  base::append_little_endian(bytes, value, kNumber);
  return bytes;
}

/// REQUIRES: at least kNumber bytes.
uint32_t number_at(std::string_view bytes, size_t at) {
  return static_cast<uint32_t>(base::little_endian<kNumber>(bytes.substr(at).data()));
}

std::string byte(Stream stream) {
  return {static_cast<char>(stream)};
}

struct Encoder {
  using TypeAndPayload = std::pair<char, std::string>;
  TypeAndPayload operator()(const Command& frame) const { return {'c', frame.line}; }
  TypeAndPayload operator()(const SendSignal& frame) const {
    return {'s', number(static_cast<uint32_t>(frame.number))};
  }
  TypeAndPayload operator()(const Refusal& frame) const { return {'r', frame.sentence}; }
  TypeAndPayload operator()(const Ended& frame) const {
    return {'x', number(static_cast<uint32_t>(frame.code)) +
                     number(static_cast<uint32_t>(frame.signal))};
  }
  TypeAndPayload operator()(const Data& frame) const {
    return {'d', byte(frame.stream) + frame.bytes};
  }
  TypeAndPayload operator()(const StreamEnd& frame) const { return {'e', byte(frame.stream)}; }
  TypeAndPayload operator()(const Grant& frame) const {
    return {'g', byte(frame.stream) + number(frame.bytes)};
  }
  TypeAndPayload operator()(const HangUp& frame) const { return {'h', byte(frame.stream)}; }
};

Error broken(const std::string& what) {
  return {.code = ErrorCode::kInvalid, .what = what};
}

std::optional<Stream> stream_at(std::string_view body) {
  if (body.empty() || static_cast<uint8_t>(body[0]) > 2) return std::nullopt;
  return static_cast<Stream>(body[0]);
}

std::optional<Frame> decode_of_stream(char kind, std::string_view body) {
  const auto stream = stream_at(body);
  if (!stream) return std::nullopt;
  const std::string_view rest = body.substr(1);
  if (kind == 'd') return Data{*stream, std::string(rest)};
  if (kind == 'g' && rest.size() == 4) return Grant{*stream, number_at(rest, 0)};
  if (!rest.empty()) return std::nullopt;
  if (kind == 'e') return StreamEnd{*stream};
  if (kind == 'h') return HangUp{*stream};
  return std::nullopt;
}

std::optional<Frame> decode(char kind, std::string_view body) {
  constexpr uint32_t kLargestNumber = 255;
  switch (kind) {
    case 'c':
      return Command{std::string(body)};
    case 'r':
      return Refusal{std::string(body)};
    case 's': {
      if (body.size() != 4 || number_at(body, 0) > kLargestNumber) return std::nullopt;
      return SendSignal{static_cast<int>(number_at(body, 0))};
    }
    case 'x': {
      if (body.size() != 8) return std::nullopt;
      const uint32_t code = number_at(body, 0);
      const uint32_t signal = number_at(body, 4);
      if (code > kLargestNumber || signal > kLargestNumber) return std::nullopt;
      return Ended{static_cast<int>(code), static_cast<int>(signal)};
    }
    default:
      return decode_of_stream(kind, body);
  }
}

}  // namespace

std::string encode(const Frame& frame) {
  const auto [kind, body] = std::visit(Encoder{}, frame);
  return base::encode_frame(kind, body);
}

Result<std::optional<Frame>> FrameReader::next() {
  MUSTER_TRY(const auto framed, frames_.front());
  if (!framed) return std::optional<Frame>();
  auto frame = decode(framed->tag, framed->bytes);
  if (!frame) return broken("sent no frame that is known");
  frames_.pop(*framed);
  return frame;
}

}  // namespace muster::engine::rsh

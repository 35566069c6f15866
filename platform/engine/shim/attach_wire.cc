#include "engine/shim/attach_wire.h"

#include <optional>

#include "base/units.h"
#include "engine/shim/packet.h"

namespace muster::engine {

namespace {

constexpr char kInputPacket = 'i';
constexpr char kInputEndPacket = 'e';
constexpr char kSizePacket = 'r';
constexpr char kOutputPacket = 'o';
constexpr char kErrorOutputPacket = 'x';
constexpr char kLeftOutPacket = 'l';

/// What a terminal's size has room for.
constexpr int kLargestSize = 65'535;

struct EncodeAttach {
  std::string operator()(const AttachInput& input) const {
    return packet(kInputPacket, input.bytes);
  }
  std::string operator()(const AttachInputEnd&) const { return packet(kInputEndPacket, ""); }
  std::string operator()(const AttachSize& size) const {
    return packet(kSizePacket, std::to_string(size.rows) + " " + std::to_string(size.columns));
  }
  std::string operator()(const AttachOutput& output) const {
    return packet(output.is_error ? kErrorOutputPacket : kOutputPacket, output.bytes);
  }
  std::string operator()(const AttachLeftOut& left_out) const {
    return packet(kLeftOutPacket, std::to_string(left_out.bytes));
  }
};

std::optional<int> dimension_of(std::string_view text) {
  const auto number = base::number_of<int>(text);
  return number && *number > 0 && *number <= kLargestSize ? number : std::nullopt;
}

std::optional<AttachMessage> attach_size_of(std::string_view text) {
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto rows = dimension_of(text.substr(0, blank));
  const auto columns = dimension_of(text.substr(blank + 1));
  if (!rows || !columns) return std::nullopt;
  return AttachSize{.rows = *rows, .columns = *columns};
}

std::optional<AttachMessage> attach_message_of(char type, std::string_view rest) {
  switch (type) {
    case kInputPacket:
      return AttachInput{std::string(rest)};
    case kInputEndPacket:
      if (rest.empty()) return AttachInputEnd{};
      break;
    case kSizePacket:
      return attach_size_of(rest);
    case kOutputPacket:
    case kErrorOutputPacket:
      return AttachOutput{.bytes = std::string(rest), .is_error = type == kErrorOutputPacket};
    case kLeftOutPacket:
      if (const auto bytes = base::number_of<uint64_t>(rest)) return AttachLeftOut{*bytes};
      break;
    default:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::string encode(const AttachMessage& message) {
  return std::visit(EncodeAttach{}, message);
}

base::Result<AttachMessage> decode_attach(std::string_view packet) {
  return packet.empty() ? decode_attach('\0', {}) : decode_attach(packet.front(), packet.substr(1));
}

base::Result<AttachMessage> decode_attach(char tag, std::string_view bytes) {
  auto message = attach_message_of(tag, bytes);
  if (message) return *std::move(message);
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "a packet of the attach socket is none that is known"};
}

}  // namespace muster::engine

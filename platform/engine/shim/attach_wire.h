// What is said on the socket "attach" in a task's folder: a message a packet (SOCK_SEQPACKET), its
// first byte says which it is.
//
//   to the shim    i BYTES         input of the program
//                  e               the end of it
//                  r ROWS COLUMNS  the terminal has this size now
//   from the shim  o BYTES         output
//                  x BYTES         error output; with a terminal there is none
//                  l NUMBER        so many bytes of output were left out here
//
// How the program ended is not among them: the socket closes when its exit record stands.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace muster::engine {

struct AttachInput {
  std::string bytes;
  bool operator==(const AttachInput&) const = default;
};
struct AttachInputEnd {
  bool operator==(const AttachInputEnd&) const = default;
};
struct AttachSize {
  int rows = 0;
  int columns = 0;
  bool operator==(const AttachSize&) const = default;
};
struct AttachOutput {
  std::string bytes;
  bool is_error = false;
  bool operator==(const AttachOutput&) const = default;
};
struct AttachLeftOut {
  uint64_t bytes = 0;
  bool operator==(const AttachLeftOut&) const = default;
};

using AttachMessage =
    std::variant<AttachInput, AttachInputEnd, AttachSize, AttachOutput, AttachLeftOut>;

/// The most bytes that an input or output carries: a packet holds no more.
inline constexpr size_t kAttachPiece = 32 << 10;
/// The longest packet.
inline constexpr size_t kAttachPacket = kAttachPiece + 64;

std::string encode(const AttachMessage& message);

/// Reads a message from a packet, or from the tag and the bytes of a frame. kInvalid: the bytes are
/// not an attach message.
base::Result<AttachMessage> decode_attach(std::string_view packet);
base::Result<AttachMessage> decode_attach(char tag, std::string_view bytes);

}  // namespace muster::engine

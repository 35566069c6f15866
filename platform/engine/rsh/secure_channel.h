// One end of a connection that both ends encrypt with a key they both have: TLS 1.3 with a
// pre-shared key and fresh Diffie-Hellman shares, and nothing else: no certificate, no earlier
// version, no resumption. Who has another key, or none, gets no further than the handshake.
//
// Bytes in, bytes out; it touches no socket. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::engine::rsh {

using Key = std::array<uint8_t, 32>;

/// 64 hexadecimal digits and a newline. kInvalid, which never shows what was there instead.
base::Result<Key> read_key(std::string_view text);

enum class End { kNear, kFar };

class SecureChannel {
 public:
  SecureChannel(End end, const Key& key);
  SecureChannel(SecureChannel&&) noexcept;
  ~SecureChannel();

  /// What came from the other end. Errors read behind its name. kRefused: it has another key, or is
  /// none of ours; kInvalid: it was tampered with.
  base::Result<void> receive(std::string_view encrypted);

  /// REQUIRES: established().
  void send(std::string_view plain);

  /// Both have shown that they have the key.
  bool established() const;

  /// What is to be sent to the other end; taken away with it. The near end speaks first.
  std::string take_encrypted();
  /// What the other end has said.
  std::string take_plain();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::engine::rsh

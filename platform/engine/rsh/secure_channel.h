// One end of a connection encrypted with a shared key: TLS 1.3 with a pre-shared key and fresh
// Diffie-Hellman shares. Certificates, earlier versions and resumption are disabled. A peer without
// the key fails in the handshake.
//
// Bytes in, bytes out: the class uses no socket. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::engine::rsh {

using Key = std::array<uint8_t, 32>;

/// Parses 64 hexadecimal digits and a newline. kInvalid; the error never contains the text.
base::Result<Key> read_key(std::string_view text);

enum class End { kNear, kFar };

class SecureChannel {
 public:
  SecureChannel(End end, const Key& key);
  SecureChannel(SecureChannel&&) noexcept;
  ~SecureChannel();

  /// Takes bytes from the other end. Errors are phrased to follow its name. kRefused: it has
  /// another key, or does not use this protocol; kInvalid: the bytes were tampered with.
  base::Result<void> receive(std::string_view encrypted);

  /// REQUIRES: established().
  void send(std::string_view plain);

  /// Whether both ends have proved that they have the key.
  bool established() const;

  /// Returns and removes the bytes to send to the other end. The near end begins.
  std::string take_encrypted();
  /// Returns and removes the decrypted bytes from the other end.
  std::string take_plain();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::engine::rsh

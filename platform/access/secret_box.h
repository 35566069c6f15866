// Seals secrets for the database: AES-256-GCM (OpenSSL), with a fresh nonce for each secret. The
// secret's project and name are authenticated with it, so that it cannot be opened for another
// project.
//
// Thread-safe (the key is only read). The destructor wipes the key.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"

namespace muster::access {

/// A stored secret: its value is sealed.
struct Secret {
  std::string project;
  std::string name;  ///< a valid name of an environment variable
  std::string sealed;
  base::Time created;
  base::Time changed;
  std::string changed_by;

  bool operator==(const Secret&) const = default;
};

class SecretBox {
 public:
  using Key = std::array<uint8_t, 32>;

  explicit SecretBox(const Key& key) : key_(key) {}
  SecretBox(const SecretBox&) = delete;
  SecretBox& operator=(const SecretBox&) = delete;
  ~SecretBox();

  /// nonce (12 bytes), ciphertext, tag (16 bytes).
  std::string seal(std::string_view value, std::string_view project, std::string_view name,
                   base::RandomSource& random) const;
  /// kRefused: sealed with another key, for another place, or damaged.
  base::Result<std::string> open(std::string_view sealed, std::string_view project,
                                 std::string_view name) const;

 private:
  Key key_;
};

/// Parses a key of 64 hexadecimal digits; ignores spaces around it.
base::Result<SecretBox::Key> parse_key(std::string_view text);
std::string key_text(const SecretBox::Key& key);

}  // namespace muster::access

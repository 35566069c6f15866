#include "notify/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <chrono>
#include <span>

#include "base/random.h"

namespace muster::notify {

std::string signature_of(std::string_view key, base::Time now, std::string_view body) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  const std::string time = std::to_string(seconds);
  std::string text = time + ".";
  text += body;
  std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(), &size);
  return "t=" + time + ",v1=" + base::to_hex(std::span<const uint8_t>(code).first(size));
}

}  // namespace muster::notify

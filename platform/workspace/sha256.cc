#include "workspace/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "base/random.h"

namespace muster::workspace {

namespace {

// Fails only where memory or the library itself does: a wrong sum would be worse than an end.
void check(bool done) {
  if (!done) std::abort();
}

}  // namespace

struct Sha256::State {
  struct FreeContext {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  check(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::put(std::string_view bytes) {
  check(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::digest() {
  std::array<uint8_t, 32> digest{};
  check(EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr) == 1);
  return base::to_hex(digest);
}

}  // namespace muster::workspace

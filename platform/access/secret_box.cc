#include "access/secret_box.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <cstdlib>
#include <memory>
#include <span>

namespace muster::access {

namespace {

using base::Error;
using base::ErrorCode;

constexpr size_t kNonce = 12;
constexpr size_t kTag = 16;

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

/// Fails only if memory or the library fails. Ending the server is safer than storing a secret
/// unencrypted.
void must(bool done) {
  if (!done) std::abort();
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* bytes_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

void append_counted(std::string& into, std::string_view text) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    into += static_cast<char>(uint64_t{text.size()} >> shift & 0xff);
  }
  into += text;
}

/// Each part is preceded by its length, so that ("ab", "c") differs from ("a", "bc").
std::string place_of(std::string_view project, std::string_view name) {
  std::string place;
  append_counted(place, project);
  append_counted(place, name);
  return place;
}

Context begin(const SecretBox::Key& key, std::string_view nonce, std::string_view place,
              bool sealing) {
  Context context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  must(context != nullptr);
  must(EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(), bytes_of(nonce),
                         sealing ? 1 : 0) == 1);
  int length = 0;
  must(EVP_CipherUpdate(context.get(), nullptr, &length, bytes_of(place),
                        static_cast<int>(place.size())) == 1);
  return context;
}

std::string transformed(EVP_CIPHER_CTX* context, std::string_view text) {
  std::string result(text.size(), '\0');
  int length = 0;
  must(EVP_CipherUpdate(context, bytes_of(result), &length, bytes_of(text),
                        static_cast<int>(text.size())) == 1);
  must(static_cast<size_t>(length) == text.size());
  return result;
}

/// Whether the tag is valid. (GCM is a stream mode: no text is left at the end.)
bool finish(EVP_CIPHER_CTX* context) {
  unsigned char rest[EVP_MAX_BLOCK_LENGTH];
  int length = 0;
  return EVP_CipherFinal_ex(context, rest, &length) == 1;
}

Error does_not_open(std::string_view project, std::string_view name) {
  return {.code = ErrorCode::kRefused,
          .what = "secret '" + std::string(name) + "' of project '" + std::string(project) +
                  "' cannot be opened: it was encrypted with another key, or is damaged",
          .advice = "start the server with the key with which it was set, or set the secret again"};
}

}  // namespace

SecretBox::~SecretBox() {
  OPENSSL_cleanse(key_.data(), key_.size());
}

std::string SecretBox::seal(std::string_view value, std::string_view project, std::string_view name,
                            base::RandomSource& random) const {
  std::string sealed(kNonce, '\0');
  random.fill(std::span(reinterpret_cast<uint8_t*>(sealed.data()), kNonce));
  const Context context = begin(key_, sealed, place_of(project, name), true);
  sealed += transformed(context.get(), value);
  must(finish(context.get()));
  std::string tag(kTag, '\0');
  must(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTag, tag.data()) == 1);
  return sealed + tag;
}

base::Result<std::string> SecretBox::open(std::string_view sealed, std::string_view project,
                                          std::string_view name) const {
  if (sealed.size() < kNonce + kTag) return does_not_open(project, name);
  std::string tag(sealed.substr(sealed.size() - kTag));
  const std::string_view hidden = sealed.substr(kNonce, sealed.size() - kNonce - kTag);
  const Context context = begin(key_, sealed.substr(0, kNonce), place_of(project, name), false);
  std::string value = transformed(context.get(), hidden);
  must(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTag, tag.data()) == 1);
  if (finish(context.get())) return value;
  OPENSSL_cleanse(value.data(), value.size());
  return does_not_open(project, name);
}

base::Result<SecretBox::Key> parse_key(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpaces);
  const size_t last = text.find_last_not_of(kSpaces);
  text = first == std::string_view::npos ? "" : text.substr(first, last - first + 1);

  const auto digit = [](char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
    return -1;
  };
  SecretBox::Key key{};
  bool good = text.size() == 2 * key.size();
  for (size_t i = 0; good && i < key.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    key[i] = static_cast<uint8_t>((high << 4 | low) & 0xff);
  }
  if (good) return key;
  // The message does not contain the text, which may be the right key with a typo.
  return Error{.code = ErrorCode::kInvalid,
               .what = "the key for secrets is not 64 hexadecimal digits",
               .advice = "make one with: openssl rand -hex 32"};
}

std::string key_text(const SecretBox::Key& key) {
  return base::to_hex(key);
}

}  // namespace muster::access

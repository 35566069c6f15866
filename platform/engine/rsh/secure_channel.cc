#include "engine/rsh/secure_channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstdlib>
#include <cstring>

namespace muster::engine::rsh {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::string_view kIdentity = "muster";
constexpr const char* kCipher = "TLS_AES_128_GCM_SHA256";
constexpr std::array<uint8_t, 2> kCipherNumber{0x13, 0x01};
constexpr size_t kPieceOfPlain = 16 << 10;

int digit(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  return -1;
}

/// TLS 1.3 treats a pre-shared key like the session of an earlier connection.
SSL_SESSION* session_of(SSL* ssl) {
  const Key& key = *static_cast<const Key*>(SSL_get_app_data(ssl));
  SSL_SESSION* const session = SSL_SESSION_new();
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kCipherNumber.data());
  if (session == nullptr || cipher == nullptr ||
      SSL_SESSION_set1_master_key(session, key.data(), key.size()) != 1 ||
      SSL_SESSION_set_cipher(session, cipher) != 1 ||
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, size_t* length,
              SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *length = kIdentity.size();
  *session = session_of(ssl);
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char* identity, size_t length, SSL_SESSION** session) {
  *session = nullptr;
  const bool known =
      length == kIdentity.size() && std::memcmp(identity, kIdentity.data(), length) == 0;
  if (known) *session = session_of(ssl);
  return 1;
}

/// Without OpenSSL's configuration files, which may name modules that do not exist here. It can
/// fail only without memory.
void require(bool done) {
  if (!done) std::abort();
}

}  // namespace

struct SecureChannel::State {
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  Key key;
  std::unique_ptr<SSL_CTX, FreeContext> context;
  std::unique_ptr<SSL, FreeSsl> ssl;
  BIO* incoming = nullptr;  ///< both belong to `ssl`
  BIO* outgoing = nullptr;
  std::string plain;

  ~State() { OPENSSL_cleanse(key.data(), key.size()); }
};

Result<Key> read_key(std::string_view text) {
  Key key{};
  if (text.ends_with('\n')) text.remove_suffix(1);
  bool good = text.size() == 2 * key.size();
  for (size_t i = 0; good && i < key.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    if (good) key[i] = static_cast<uint8_t>(high << 4 | low);
  }
  if (!good) return Error{.code = ErrorCode::kInvalid, .what = "the key of the job is damaged"};
  return key;
}

SecureChannel::SecureChannel(End end, const Key& key) : state_(std::make_unique<State>()) {
  require(OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr) == 1);
  State& state = *state_;
  state.key = key;
  state.context.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* const context = state.context.get();
  require(context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
          SSL_CTX_set_ciphersuites(context, kCipher) == 1 &&
          SSL_CTX_set1_groups_list(context, "X25519") == 1 &&
          SSL_CTX_set_num_tickets(context, 0) == 1);
  SSL_CTX_set_psk_use_session_callback(context, offer_key);
  SSL_CTX_set_psk_find_session_callback(context, find_key);
  state.ssl.reset(SSL_new(context));
  state.incoming = BIO_new(BIO_s_mem());
  state.outgoing = BIO_new(BIO_s_mem());
  require(state.ssl && state.incoming != nullptr && state.outgoing != nullptr);
  BIO_set_mem_eof_return(state.incoming, -1);
  SSL_set_bio(state.ssl.get(), state.incoming, state.outgoing);
  SSL_set_app_data(state.ssl.get(), &state.key);
  if (end == End::kFar) {
    SSL_set_accept_state(state.ssl.get());
  } else {
    SSL_set_connect_state(state.ssl.get());
    // A peer without the key may offer a certificate instead. No authority is trusted, so every
    // certificate is rejected.
    SSL_set_verify(state.ssl.get(), SSL_VERIFY_PEER, nullptr);
    SSL_do_handshake(state.ssl.get());  // sends the first message of the handshake
  }
}

SecureChannel::SecureChannel(SecureChannel&&) noexcept = default;
SecureChannel::~SecureChannel() = default;

Result<void> SecureChannel::receive(std::string_view encrypted) {
  SSL* const ssl = state_->ssl.get();
  ERR_clear_error();
  require(BIO_write(state_->incoming, encrypted.data(), static_cast<int>(encrypted.size())) ==
          static_cast<int>(encrypted.size()));
  std::array<char, kPieceOfPlain> piece;
  const bool was_established = established();
  while (true) {
    const int count = SSL_read(ssl, piece.data(), static_cast<int>(piece.size()));
    if (count > 0) {
      state_->plain.append(piece.data(), static_cast<size_t>(count));
      continue;
    }
    const int error = SSL_get_error(ssl, count);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_ZERO_RETURN) return {};
    if (was_established) {
      return Error{.code = ErrorCode::kInvalid, .what = "sent data that was changed on the way"};
    }
    return Error{.code = ErrorCode::kRefused, .what = "has another key"};
  }
}

void SecureChannel::send(std::string_view plain) {
  while (!plain.empty()) {
    const auto piece = plain.substr(0, kPieceOfPlain);
    require(SSL_write(state_->ssl.get(), piece.data(), static_cast<int>(piece.size())) ==
            static_cast<int>(piece.size()));
    plain.remove_prefix(piece.size());
  }
}

bool SecureChannel::established() const {
  SSL* const ssl = state_->ssl.get();
  return SSL_is_init_finished(ssl) == 1 && SSL_session_reused(ssl) == 1;  // "reused": by the key
}

std::string SecureChannel::take_encrypted() {
  std::string bytes(BIO_ctrl_pending(state_->outgoing), '\0');
  if (bytes.empty()) return bytes;
  require(BIO_read(state_->outgoing, bytes.data(), static_cast<int>(bytes.size())) ==
          static_cast<int>(bytes.size()));
  return bytes;
}

std::string SecureChannel::take_plain() {
  return std::exchange(state_->plain, {});
}

}  // namespace muster::engine::rsh

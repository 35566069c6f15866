#include "http/tls_session.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "http/openssl_handles.h"

namespace muster::http {

namespace {

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL, so a closed connection would kill the
// process.

int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
}

bool may_retry(ssize_t count) {
  return count < 0 && (errno == EAGAIN || errno == EINTR);
}

int send_by(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count =
      ::send(socket_of(bio), bytes, static_cast<size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (may_retry(count)) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int receive_by(BIO* bio, char* buffer, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::recv(socket_of(bio), buffer, static_cast<size_t>(size), MSG_DONTWAIT);
  if (may_retry(count)) BIO_set_retry_read(bio);
  return static_cast<int>(count);
}

long control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

BIO* bio_on(int socket) {
  static BIO_METHOD* const kMethod = [] {
    BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(method, send_by);
    BIO_meth_set_read(method, receive_by);
    BIO_meth_set_ctrl(method, control);
    BIO_meth_set_create(method, create);
    return method;
  }();
  BIO* bio = BIO_new(kMethod);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the data of a BIO is a pointer
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));
  return bio;
}

int size_for_openssl(size_t size) {
  return static_cast<int>(std::min<size_t>(size, std::numeric_limits<int>::max()));
}

}  // namespace

TlsSession::TlsSession(TlsContext context, int socket, Role role)
    : context_(std::move(context)), ssl_(SSL_new(context_.get()), SSL_free) {
  BIO* bio = bio_on(socket);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (role == Role::kServer) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

TlsSession::~TlsSession() = default;

void TlsSession::expect_host(const std::string& host) {
  X509_VERIFY_PARAM* expected = SSL_get0_param(ssl_.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) == 1) return;
  ERR_clear_error();
  // SSL_set_tlsext_host_name() without its old-style cast.
  SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
           const_cast<char*>(host.c_str()));
  SSL_set_hostflags(ssl_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  SSL_set1_host(ssl_.get(), host.c_str());
}

TlsStep TlsSession::handshake() {
  ERR_clear_error();
  return step_of(SSL_do_handshake(ssl_.get()));
}

TlsStep TlsSession::read(char* buffer, size_t size) {
  ERR_clear_error();
  return step_of(SSL_read(ssl_.get(), buffer, size_for_openssl(size)));
}

TlsStep TlsSession::write(std::string_view bytes) {
  if (bytes.empty()) return {};
  ERR_clear_error();
  return step_of(SSL_write(ssl_.get(), bytes.data(), size_for_openssl(bytes.size())));
}

TlsStep TlsSession::close_output() {
  if (!usable_) return {.kind = TlsStep::Kind::kFailed};
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_.get());
  if (result >= 0) return {};  // sent; 1: the peer has closed its output, too
  return step_of(result);
}

void TlsSession::try_to_close_output() {
  if (!usable_) return;
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::string TlsSession::fingerprint() const {
  const X509* certificate = SSL_get0_peer_certificate(ssl_.get());
  return certificate == nullptr ? std::string() : fingerprint_of(*certificate);
}

std::optional<std::string> TlsSession::certificate_fault() const {
  // OpenSSL stores a result even if it does not act on it.
  if (SSL_get_verify_mode(ssl_.get()) == SSL_VERIFY_NONE) return std::nullopt;
  const long result = SSL_get_verify_result(ssl_.get());
  if (result == X509_V_OK) return std::nullopt;
  return X509_verify_cert_error_string(result);
}

TlsStep TlsSession::step_of(int result) {
  usable_ = true;
  if (result > 0) return {.bytes = static_cast<size_t>(result)};
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {.kind = TlsStep::Kind::kWantsRead};
    case SSL_ERROR_WANT_WRITE:
      return {.kind = TlsStep::Kind::kWantsWrite};
    case SSL_ERROR_ZERO_RETURN:
      return {.kind = TlsStep::Kind::kEnd};
    default:
      usable_ = false;
      const bool has_error = ERR_peek_error() != 0;
      return {.kind = TlsStep::Kind::kFailed, .fault = has_error ? openssl_complaint() : ""};
  }
}

}  // namespace muster::http

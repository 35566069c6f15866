#include "parameter_server/tls_stream.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;

Error network_error(const std::string& what, const std::string& host) {
  return {ErrorCode::kSystem, "cannot " + what + " " + host + ": " + std::strerror(errno)};
}

void set_interval(int socket, int which, std::chrono::milliseconds interval) {
  const timeval time = {.tv_sec = interval.count() / 1000,
                        .tv_usec = interval.count() % 1000 * 1000};
  ::setsockopt(socket, SOL_SOCKET, which, &time, sizeof time);
}

// Whether a system call is to be repeated: it was interrupted, or has waited for an interval.
bool is_unfinished() {
  return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
}

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses addresses_of(const HostAndPort& where) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found);
  if (error == 0) return Addresses(found);
  errno = error == EAI_SYSTEM ? errno : EADDRNOTAVAIL;
  return nullptr;
}

// The first socket with which `use` succeeds.
Result<Socket> first_socket(const char* what, const HostAndPort& where,
                            const std::function<bool(int, const addrinfo&)>& use) {
  const Addresses addresses = addresses_of(where);
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.descriptor() >= 0 && use(socket.descriptor(), *one)) return socket;
  }
  return network_error(what, where.host);
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

HostAndPort split_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {.host = address};
  HostAndPort parts = {.host = address.substr(0, colon)};
  if (parts.host.starts_with('[') && parts.host.ends_with(']')) {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  const unsigned long port = std::strtoul(address.c_str() + colon + 1, nullptr, 10);
  if (port <= UINT16_MAX) parts.port = static_cast<std::uint16_t>(port);
  return parts;
}

Result<Socket> listen_on(const std::string& host) {
  return first_socket("listen on", {.host = host}, [](int socket, const addrinfo& at) {
    return ::bind(socket, at.ai_addr, at.ai_addrlen) == 0 && ::listen(socket, SOMAXCONN) == 0;
  });
}

std::uint16_t port_of(const Socket& socket) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  if (::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  // The port is at the same place for IPv4 and IPv6.
  return ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

Result<Socket> connect_to(const HostAndPort& where, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  return first_socket("connect to", where, [&](int socket, const addrinfo& at) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      errno = ETIMEDOUT;
      return false;
    }
    set_interval(socket, SO_SNDTIMEO, left);  // connect() obeys it
    return ::connect(socket, at.ai_addr, at.ai_addrlen) == 0;
  });
}

namespace {

struct FreePemBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreePemCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreePemKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using PemBio = std::unique_ptr<BIO, FreePemBio>;
using PemCertificate = std::unique_ptr<X509, FreePemCertificate>;
using PemKey = std::unique_ptr<EVP_PKEY, FreePemKey>;

PemCertificate certificate_in(const std::string& text) {
  const PemBio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return PemCertificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

PemKey key_in(const std::string& text) {
  const PemBio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return PemKey(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

// Encrypted records that one system call receives, at most.
constexpr std::size_t kReceiveBytes = 128 * 1024;

bool prepare_context(SSL_CTX* context, const Certificates& own) {
  const PemCertificate authority = certificate_in(own.authority);
  const PemCertificate certificate = certificate_in(own.certificate);
  const PemKey key = key_in(own.private_key);
  // AES-128 first, as gRPC has it.
  if (!authority || !certificate || !key ||
      SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(
          context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256") !=
          1 ||
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
      SSL_CTX_use_certificate(context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_set_num_tickets(context, 0) != 1) {
    return false;
  }
  // OpenSSL checks that the certificate is one for the other end: of a worker, or of a server.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReceiveBytes);
  return true;
}

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

Result<TlsContext> TlsContext::create(std::string_view hex_key, End end) {
  const Result<Certificates> own = certificates_from(hex_key, end);
  if (!own) return own.error();
  return create(*own, end);
}

Result<TlsContext> TlsContext::create(const Certificates& own, End end) {
  TlsContext context(SSL_CTX_new(end == End::kServer ? TLS_server_method() : TLS_client_method()),
                     end);
  if (context.context_ && prepare_context(context.context_.get(), own)) return context;
  return Error{ErrorCode::kSystem, "OpenSSL cannot use the certificate of the job"};
}

// OpenSSL calls these functions instead of reading and writing the socket itself.
struct TlsStreamBio {
  static TlsStream& stream(BIO* bio) { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

  static int write(BIO* bio, const char* bytes, int count) {
    return stream(bio).put(std::as_bytes(std::span(bytes, static_cast<std::size_t>(count)))) ? count
                                                                                             : -1;
  }

  static int read(BIO* bio, char* bytes, int count) {
    return static_cast<int>(
        stream(bio).get(std::as_writable_bytes(std::span(bytes, static_cast<std::size_t>(count)))));
  }

  static long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
    if (command == BIO_CTRL_FLUSH) return stream(bio).send_all() ? 1 : 0;
    return 0;
  }

  static const BIO_METHOD* method() {
    static const BIO_METHOD* const kMethod = [] {
      BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster");
      BIO_meth_set_write(made, write);
      BIO_meth_set_read(made, read);
      BIO_meth_set_ctrl(made, control);
      return made;
    }();
    return kMethod;
  }
};

void TlsStream::Free::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsStream::TlsStream(const TlsContext& context, Socket socket)
    : socket_(std::move(socket)), ssl_(SSL_new(context.context_.get())) {
  // Four records and their heads.
  encrypted_.reserve(4 * (kRecordBytes + SSL3_RT_MAX_ENCRYPTED_OVERHEAD));
  plain_.reserve(kRecordBytes);
  const int yes = 1;
  ::setsockopt(socket_.descriptor(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // Firewalls forget connections that are idle, such as those of workers that compute for long.
  const int idle_seconds = 30;
  ::setsockopt(socket_.descriptor(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  ::setsockopt(socket_.descriptor(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  BIO* const bio = BIO_new(TlsStreamBio::method());
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (context.end_ == End::kServer) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
    SSL_set1_host(ssl_.get(), std::string(kServerName).c_str());
  }
}

TlsStream::~TlsStream() = default;

void TlsStream::wait_with(Patience patience, std::chrono::milliseconds interval) {
  patience_ = std::move(patience);
  set_interval(socket_.descriptor(), SO_RCVTIMEO, interval);
  set_interval(socket_.descriptor(), SO_SNDTIMEO, interval);
}

bool TlsStream::shake_hands() {
  ERR_clear_error();
  return SSL_do_handshake(ssl_.get()) == 1;
}

bool TlsStream::read(std::span<std::byte> into) {
  if (!plain_.empty() && !flush()) return false;
  ERR_clear_error();
  while (!into.empty()) {
    std::size_t count = 0;
    if (SSL_read_ex(ssl_.get(), into.data(), into.size(), &count) != 1) return false;
    into = into.subspan(count);
  }
  return true;
}

// Whole records go directly from the caller's memory. The rest of a small write waits for more, so
// that a model of many small tensors is sent in few records.
bool TlsStream::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (plain_.empty() && bytes.size() >= kRecordBytes) {
      const std::size_t whole = bytes.size() / kRecordBytes * kRecordBytes;
      if (!encrypt(bytes.first(whole))) return false;
      bytes = bytes.subspan(whole);
      continue;
    }
    const std::size_t count = std::min(bytes.size(), kRecordBytes - plain_.size());
    plain_.insert(plain_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (plain_.size() < kRecordBytes) continue;
    if (!encrypt(plain_)) return false;
    plain_.clear();
  }
  return true;
}

bool TlsStream::encrypt(std::span<const std::byte> bytes) {
  ERR_clear_error();
  sent_with_key_ += bytes.size();
  if (sent_with_key_ > rekey_after_) {
    if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return false;
    sent_with_key_ = bytes.size();
  }
  while (!bytes.empty()) {
    std::size_t count = 0;
    if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count) != 1) return false;
    bytes = bytes.subspan(count);
  }
  return true;
}

bool TlsStream::flush() {
  if (!encrypt(plain_)) return false;
  plain_.clear();
  return send_all();
}

void TlsStream::shut_down() {
  ::shutdown(socket_.descriptor(), SHUT_RDWR);
}

bool TlsStream::put(std::span<const std::byte> encrypted) {
  if (encrypted_.size() + encrypted.size() > encrypted_.capacity() && !send_all()) return false;
  encrypted_.insert(encrypted_.end(), encrypted.begin(), encrypted.end());
  return true;
}

bool TlsStream::send_all() {
  std::span<const std::byte> rest(encrypted_);
  while (!rest.empty() && may_go_on()) {
    const ssize_t sent = ::send(socket_.descriptor(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && !is_unfinished()) return false;
    if (sent > 0) rest = rest.subspan(static_cast<std::size_t>(sent));
  }
  if (!rest.empty()) return false;
  encrypted_.clear();
  return true;
}

std::ptrdiff_t TlsStream::get(std::span<std::byte> into) {
  if (!send_all()) return -1;
  while (may_go_on()) {
    const ssize_t count = ::recv(socket_.descriptor(), into.data(), into.size(), 0);
    if (count >= 0 || !is_unfinished()) return count;
  }
  return -1;
}

}  // namespace muster::parameter_server

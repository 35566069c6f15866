// A connection over TLS 1.3 between a worker and a parameter server, on which the calling thread
// reads and writes itself. Both ends prove by their certificates (certificates.h) that they have the
// job's key.
//
// On the machines of docs/benchmarks.md a record of 16 KiB costs more in system calls than in
// encryption. So a stream sends four records in one call, and receives as many as have arrived.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/collective/result.h"
#include "parameter_server/certificates.h"

// OpenSSL's types, whose headers are heavy.
struct bio_st;
struct ssl_ctx_st;
struct ssl_st;

namespace muster::parameter_server {

/// A connected socket. Thread-safety: as far as that of its descriptor.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&&) = delete;
  ~Socket();

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// host:port as two parts, without the brackets of an IPv6 address. The port is 0 if the text has no port.
struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};
HostAndPort split_address(const std::string& address);

/// Listens on a free port of `host`. Errors: kSystem.
collective::Result<Socket> listen_on(const std::string& host);

/// The port on which the socket listens; 0 if it does not listen.
std::uint16_t port_of(const Socket& socket);

/// Tries each address of the host until `patience` has passed. Errors: kSystem.
collective::Result<Socket> connect_to(const HostAndPort& where, std::chrono::milliseconds patience);

/// The certificate of this end, and what it requires of the other. Thread-safety: immutable.
class TlsContext {
 public:
  /// Errors: those of certificates_from().
  static collective::Result<TlsContext> create(std::string_view hex_key, End end);

  /// With these certificates. Errors: kSystem.
  static collective::Result<TlsContext> create(const Certificates& own, End end);

 private:
  friend class TlsStream;
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  TlsContext(ssl_ctx_st* context, End end) : context_(context), end_(end) {}

  std::unique_ptr<ssl_ctx_st, Free> context_;
  End end_;
};

/// Thread-safety: one thread at a time; shut_down() from any thread.
class TlsStream {
 public:
  /// Whether an operation may go on. The thread of the operation calls it before each system call,
  /// so it must be cheap.
  using Patience = std::function<bool()>;

  /// The context outlives the stream. shake_hands() comes before everything else.
  TlsStream(const TlsContext& context, Socket socket);
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream();

  /// From now on an operation fails when `patience` returns false. While it waits, it asks once in
  /// each `interval`. Without patience an operation waits without end.
  void wait_with(Patience patience, std::chrono::milliseconds interval);

  /// False if the other end does not prove that it has the job's key. A worker learns only from its
  /// first read() that the server has rejected it.
  [[nodiscard]] bool shake_hands();

  /// Fills `into`. False if the connection ended before, or the patience did; the stream is useless
  /// then. It sends what write() has kept.
  [[nodiscard]] bool read(std::span<std::byte> into);

  /// Sends the bytes, or keeps some of them until flush() or a later call. False as for read().
  [[nodiscard]] bool write(std::span<const std::byte> bytes);
  [[nodiscard]] bool flush();

  /// Ends pending and later operations. They fail.
  void shut_down();

  /// Takes new keys after so many sent bytes. AES-GCM is safe for 2^24.5 full records with one key
  /// (RFC 8446, 5.5), which are 380 GB; OpenSSL leaves the change of keys to its user.
  void rekey_after(std::uint64_t bytes) { rekey_after_ = bytes; }

 private:
  friend struct TlsStreamBio;
  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  static constexpr std::size_t kRecordBytes = 16 * 1024;

  bool encrypt(std::span<const std::byte> bytes);

  // For OpenSSL: the bytes that it sends and receives.
  bool put(std::span<const std::byte> encrypted);
  std::ptrdiff_t get(std::span<std::byte> into);
  bool send_all();
  bool may_go_on() const { return !patience_ || patience_(); }

  Socket socket_;
  Patience patience_;
  std::vector<std::byte> plain_;      // less than a record, to be encrypted
  std::vector<std::byte> encrypted_;  // to be sent
  std::uint64_t rekey_after_ = std::uint64_t{64} << 30;
  std::uint64_t sent_with_key_ = 0;
  std::unique_ptr<ssl_st, Free> ssl_;
};

}  // namespace muster::parameter_server

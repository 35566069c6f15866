// How a slurmrestd is reached: its address (a unix socket, or a host and port, with or without
// TLS), and the token by which it identifies a user.
//
// A token is made by a child process when one is needed, kept in memory until shortly before it
// expires, and wiped when it is replaced. It is never logged, written, or passed to another
// program. Muster never sees the key that signs tokens.
//
// RestToken lives on the loop's thread; the rest is thread-safe (no state).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "engine/program_runner.h"
#include "http/async_client.h"

namespace muster::engine::slurm {

struct RestSocket {
  std::filesystem::path socket;

  bool operator==(const RestSocket&) const = default;
};

struct RestHost {
  std::string host;  ///< without the brackets of an IPv6 address
  int port = 0;
  bool has_tls = false;

  bool operator==(const RestHost&) const = default;
};

struct RestEndpoint {
  std::variant<RestSocket, RestHost> where;
  std::string prefix;  ///< of every path, for a slurmrestd behind a proxy: "/cluster"; may be empty

  bool operator==(const RestEndpoint&) const = default;
};

/// "unix:///run/slurmrestd.sock", "/run/slurmrestd.sock", "http://HOST[:PORT][/PREFIX]",
/// "https://HOST[:PORT][/PREFIX]". kInvalid: the text has none of these forms, or names a user.
base::Result<RestEndpoint> parse_rest_endpoint(std::string_view text);

/// For errors and listings.
std::string to_string(const RestEndpoint& endpoint);

/// Whether data that is sent there stays private: a socket or a loopback address of this machine,
/// or TLS. Names are not resolved: "localhost" is the only name of this machine.
bool is_private(const RestEndpoint& endpoint);

/// With TLS, the certificate must be signed by one of this machine's certificate authorities, or of
/// those in SSL_CERT_FILE. kInvalid: these cannot be read.
base::Result<http::AsyncPlace> place_of(const RestEndpoint& endpoint);

/// Reads the output of a program that prints a token: "SLURM_JWT=eyJ...", or the token alone.
/// kInternal: neither; the error does not quote the output.
base::Result<std::string> token_of(std::string_view printed);

/// When the token expires, if it contains an expiry.
std::optional<base::Time> end_of_token(std::string_view token);

class RestToken {
 public:
  using Then = std::function<void(const base::Result<std::string>&)>;

  /// `patience`: how long the command may take.
  RestToken(base::EventLoop& loop, std::vector<std::string> command,
            std::chrono::milliseconds patience = std::chrono::seconds(30));
  ~RestToken();
  RestToken(const RestToken&) = delete;
  RestToken& operator=(const RestToken&) = delete;

  /// Gets the current token, or runs the command if that is about to expire; concurrent requests
  /// share one run. `then` is called later, or at once if there is a token. Errors: those of the
  /// command, in its words.
  void get(Then then);

  /// The token was rejected: the next get() makes another.
  void drop();

  /// How long ago the current token was made.
  std::chrono::nanoseconds age() const;

 private:
  void has_ended(base::Result<ProgramEnd> end);
  base::Result<std::string> made_by(base::Result<ProgramEnd> end) const;
  void answer(const base::Result<std::string>& result);

  const std::vector<std::string> command_;
  const std::chrono::milliseconds patience_;
  std::string token_;
  base::Time good_until_{};
  std::chrono::steady_clock::time_point made_{};
  std::vector<Then> waiting_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  ProgramRunner programs_;
};

}  // namespace muster::engine::slurm

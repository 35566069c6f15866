// Where a slurmrestd answers: a unix socket, or a port of a host with TLS or without.
//
// Thread-safe (no state).
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
#include "engine/slurm/slurm_programs.h"
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
  std::string prefix;  ///< of every path, behind a proxy: "/cluster"; empty: none

  bool operator==(const RestEndpoint&) const = default;
};

/// "unix:///run/slurmrestd.sock", "/run/slurmrestd.sock", "http://HOST[:PORT][/PREFIX]",
/// "https://HOST[:PORT][/PREFIX]". kInvalid: it is none of these, or names a user.
base::Result<RestEndpoint> parse_rest_endpoint(std::string_view text);

/// As it is written in errors and listings.
std::string to_string(const RestEndpoint& endpoint);

/// Whether nobody else reads what is sent there: a socket or an address of this machine, or TLS.
/// A name is taken for what it says: of all names, "localhost" alone is this machine.
bool is_private(const RestEndpoint& endpoint);

/// kInvalid: the authorities of this machine cannot be read. A certificate is to be of one of them
/// (SSL_CERT_FILE names others).
base::Result<http::AsyncPlace> place_of(const RestEndpoint& endpoint);

// The token that slurmrestd knows a user by: made by a child when one is needed, kept in memory
// until shortly before its end, wiped when it is replaced. It is never logged, written, or given to
// another program; the key by which tokens are signed is nothing that Muster ever sees.
//
// On the loop's thread.

/// What a program of tokens prints: "SLURM_JWT=eyJ...", or the token alone. kInternal: neither. No
/// error holds any of it.
base::Result<std::string> token_of(std::string_view printed);

/// When it ends, as it says of itself; nothing where it does not.
std::optional<base::Time> end_of_token(std::string_view token);

class RestToken {
 public:
  using Then = std::function<void(const base::Result<std::string>&)>;

  /// How long the command may take: `patience`.
  RestToken(base::EventLoop& loop, std::vector<std::string> command,
            std::chrono::milliseconds patience = std::chrono::seconds(30));
  ~RestToken();
  RestToken(const RestToken&) = delete;
  RestToken& operator=(const RestToken&) = delete;

  /// The token, made where there is none that lasts for a while; those who ask meanwhile get the
  /// same. Later, or at once where it is there. Errors: of the program, in its words.
  void get(Then then);

  /// It was refused: the next who asks gets another.
  void drop();

  /// How long ago the present one was made.
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

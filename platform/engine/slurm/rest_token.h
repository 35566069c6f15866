// The token that slurmrestd knows a user by: made by a child when one is needed, kept in memory
// until shortly before its end, wiped when it is replaced. It is never logged, written, or given to
// another program; the key by which tokens are signed is nothing that Muster ever sees.
//
// On the loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "engine/slurm/program_runner.h"

namespace muster::engine::slurm {

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

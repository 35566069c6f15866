// Says on standard error why a job that is followed prints nothing yet: it waits. Nothing where it
// starts within moments; once more whenever the reason has become another.
//
// Not thread-safe.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "cli/connection.h"
#include "job/job.h"

namespace muster::cli {

class WaitingWord {
 public:
  WaitingWord();

  /// Readable when it is time to look again.
  int fd() const { return timer_.get(); }

  /// Looks where it is time to, by a client of its own.
  void look(const Connection& connection, const std::string& name);

  /// Enough: it has printed something, or nobody waits for it.
  void done() { timer_.reset(); }

 private:
  base::UniqueFd timer_;
  std::string told_;
};

/// "job 'second' waits: needs 1 GPU; ..."; empty: it does not wait.
std::string waiting_word(const job::Job& job);

}  // namespace muster::cli

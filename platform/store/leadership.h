// Of several servers on one database, one leads: it alone reads and writes jobs. The others wait.
//
// Threads: the loop's.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace muster::store {

class Leadership {
 public:
  virtual ~Leadership() = default;

  /// Tries to become the leader, without waiting. True: this server leads, and goes on to lead as
  /// long as the database's connection lives; a commit after it was lost fails with kRefused once
  /// another has led in between. `address` is what the others tell their callers.
  /// kUnavailable: the database does not answer.
  virtual base::Result<bool> try_to_lead(const std::string& address) = 0;

  /// Where the leader is, as it said itself; nothing where nobody leads.
  virtual base::Result<std::optional<std::string>> leader() = 0;
};

}  // namespace muster::store

// The connection of a store as its owner sees it: opened anew where it was lost, leading again
// where it led and nobody else has in between, and sure of what became of the last commit.
//
// A transaction that writes begins with a statement that gives the leader's row the number of the
// commit, on condition that the generation is still this leader's. So a commit of whoever leads no
// more fails within the database itself; and where a connection broke during COMMIT, the number
// tells on the next one whether it took place. To look it up is safe once the advisory lock is
// held again: the lock goes with the old session, and with that its COMMIT is over.
//
// Threads: one at a time. I/O, blocking.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/postgres_connection.h"
#include "store/store.h"

namespace muster::store {

class PostgresSession {
 public:
  PostgresSession(PostgresUrl url, std::filesystem::path backup_folder);

  /// A connection that can be read from, with nothing unsettled. Valid until the next call.
  Result<PostgresConnection*> reader();
  Result<void> commit(const Batch& batch);

  Result<bool> try_to_lead(const std::string& address);
  const PostgresUrl& url() const { return url_; }

 private:
  /// A commit of which nobody knows whether it took place, and what would take it back.
  struct Unsettled {
    int64_t number = 0;
    std::vector<PostgresStep> undo;
  };
  enum class Lock { kTaken, kHeldByOther };

  Result<void> connect();
  Result<void> connect_now();
  Result<void> ready();
  Result<bool> lead(const std::string& address);
  Result<void> lead_again();
  Result<Lock> take_lock();
  Result<void> end_own_session(int64_t process);
  Result<bool> took_place();
  Result<void> undo();
  Result<void> try_commit(const Batch& batch);
  Result<void> write(const Batch& batch, std::vector<PostgresStep>& undo);
  bool is_connected() const { return connection_ != nullptr && !connection_->is_broken(); }
  base::Error leads_no_more() const;

  PostgresUrl url_;
  std::filesystem::path backup_folder_;
  std::string name_;  ///< of its sessions in the server's list; no other store has it
  std::unique_ptr<PostgresConnection> connection_;
  std::optional<base::Error> last_failure_;             ///< to connect
  std::chrono::steady_clock::time_point next_attempt_;  ///< to connect
  bool leads_ = false;
  bool has_led_ = false;
  int64_t generation_ = 0;     ///< while it leads
  int64_t commit_number_ = 0;  ///< of the last commit that is known to have taken place
  std::optional<Unsettled> unsettled_;
};

// A batch as the statements that write it, and as those that would take it back.
//
// Pure.

/// Prepared on every new connection: parsing costs more than running.
extern const std::span<const PostgresConnection::Prepared> kPostgresStatements;

/// The statements of a batch, and of which job each is, to say whose id, name or key is taken, or
/// who is not there.
struct PostgresWrites {
  std::vector<PostgresStep> steps;
  struct Cause {
    size_t step = 0;
    const job::Job* job = nullptr;
  };
  std::vector<Cause> inserts;
  std::vector<Cause> updates;  ///< each has to change one row
};
PostgresWrites writes_of(const Batch& batch);

/// Reads every row that a batch is about to change, as it is before.
std::vector<PostgresStep> reads_before(const Batch& batch);

/// The inverse of a batch of which `before` is what reads_before() gave: what it touched goes, what
/// was there comes back.
std::vector<PostgresStep> undo_of(const Batch& batch, const std::vector<PostgresRows>& before);

}  // namespace muster::store

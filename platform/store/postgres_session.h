// The connection of a PostgreSQL store, which survives the loss of a connection: it opens another,
// takes the lead again unless another server has led or the database has lost commits since, and
// finds out whether the last commit succeeded.
//
// A transaction that writes begins with a statement that stores the number of the commit in the
// leader's row, if the generation is still this leader's. So the database itself rejects the commit
// of a former leader. After a connection broke during COMMIT, the number on the next connection
// shows whether the commit succeeded. It is read once the advisory lock is held again: the lock was
// released with the old session, whose COMMIT is over by then.
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

  /// A connection for reading, after the last commit is settled. Valid until the next call.
  Result<PostgresConnection*> reader();
  Result<void> commit(const Batch& batch);

  Result<bool> try_to_lead(const std::string& address);
  const PostgresUrl& url() const { return url_; }
  /// Of its sessions in the server's list; no other store has it.
  const std::string& name() const { return name_; }
  /// The number of this server's lead; nothing: it does not lead. A leader that has lost its
  /// connection keeps the number until it has another.
  std::optional<int64_t> generation() const {
    return leads_ ? std::optional(generation_) : std::nullopt;
  }

 private:
  /// A commit with an unknown result, and the statements that undo it.
  struct Unsettled {
    int64_t number = 0;
    std::vector<PostgresStep> undo;
  };
  enum class Lock { kTaken, kHeldByOther };

  Result<void> connect();
  Result<void> connect_now();
  Result<void> ready();
  Result<bool> lead(const std::string& address);
  Result<PostgresRows> become_leader(const std::string& address);
  Result<void> lead_again();
  Result<Lock> take_lock();
  Result<void> end_own_session(int64_t process);
  Result<bool> took_place();
  Result<void> undo();
  Result<void> try_commit(const Batch& batch);
  Result<void> write(const Batch& batch, std::vector<PostgresStep>& undo);
  Result<void> write_by(const Batch& batch, size_t rows_of_statement,
                        std::vector<PostgresStep>& undo);
  bool is_connected() const { return connection_ != nullptr && !connection_->is_broken(); }
  base::Error leads_no_more() const;

  PostgresUrl url_;
  std::filesystem::path backup_folder_;
  std::string name_;
  std::unique_ptr<PostgresConnection> connection_;
  bool is_schema_current_ =
      false;  ///< of the connection; false: another server leads on an older one
  std::optional<base::Error> last_failure_;             ///< to connect
  std::chrono::steady_clock::time_point next_attempt_;  ///< to connect
  bool leads_ = false;
  bool has_led_ = false;
  bool has_lost_commits_ = false;  ///< why it no longer leads: the database lacks its last commits
  int64_t generation_ = 0;         ///< while it leads
  int64_t commit_number_ = 0;      ///< of the last commit that is known to have taken place
  std::optional<Unsettled> unsettled_;
};

}  // namespace muster::store

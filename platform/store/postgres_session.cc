#include "store/postgres_session.h"

#include "base/random.h"
#include "store/postgres_schema.h"
#include "store/postgres_writes.h"
#include "store/records.h"
#include "store/store.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

namespace {

using SteadyClock = std::chrono::steady_clock;

std::string unique_name() {
  base::SystemRandom random;
  return "muster " + base::random_name(random, 16);
}

PostgresStep sql(std::string text) {
  return {.statement = std::move(text), .parameters = {}, .is_prepared = false};
}

}  // namespace

PostgresSession::PostgresSession(PostgresUrl url, std::filesystem::path backup_folder)
    : url_(std::move(url)), backup_folder_(std::move(backup_folder)), name_(unique_name()) {}

Error PostgresSession::leads_no_more() const {
  if (has_lost_commits_) {
    return {.code = ErrorCode::kRefused,
            .what = "the database " + url_.shown + " has lost changes that were stored in it",
            .advice =
                "a standby without the last changes was probably promoted; this server gives "
                "up the lead, and the next leader loads what the database has"};
  }
  return {.code = ErrorCode::kRefused,
          .what = has_led_ ? "another server leads on the database " + url_.shown
                           : "this server does not lead on the database " + url_.shown,
          .advice = "send requests to the leader; this server waits for the lead"};
}

Result<void> PostgresSession::connect() {
  if (is_connected()) return {};
  connection_.reset();
  // Waiting for a dead server must not block everything else: after a failed attempt, the same time
  // is left for other work. (A refusal takes no time.)
  const auto start = SteadyClock::now();
  if (last_failure_ && start < next_attempt_) return *last_failure_;
  Result<void> done = connect_now();
  last_failure_.reset();
  if (done) return done;
  connection_.reset();
  const auto now = SteadyClock::now();
  if (now - start > std::chrono::seconds(2)) {
    last_failure_ = done.error();
    next_attempt_ = now + (now - start);
  }
  return done;
}

Result<void> PostgresSession::connect_now() {
  MUSTER_TRY(connection_, PostgresConnection::open(url_, name_));
  MUSTER_TRY(is_schema_current_,
             migrate_unless_led(*connection_, kPostgresMigrations, backup_folder_));
  // The statements need the present tables, and this server needs none of them before it leads.
  if (is_schema_current_) MUSTER_CHECK(connection_->prepare(postgres_statements()));
  return leads_ ? lead_again() : Result<void>();
}

/// It is not an error if this server no longer leads: it can still read. It gives up the lead if
/// commits are missing, as after a failover to a standby that replicated asynchronously: the server's
/// state in memory is no longer that of the database.
Result<void> PostgresSession::lead_again() {
  MUSTER_TRY(const Lock lock, take_lock());
  if (lock == Lock::kTaken) {
    MUSTER_TRY(const PostgresRows leader,
               connection_->query("SELECT generation, commit_number FROM leader"));
    const int64_t number = leader.number(0, 1);
    const bool has_all_commits =
        number == commit_number_ || (unsettled_ && number == unsettled_->number);
    const bool is_same_lead = leader.number(0, 0) == generation_;
    if (is_same_lead && has_all_commits) return {};
    // A smaller generation: even the commit with which this server took the lead is lost.
    has_lost_commits_ = leader.number(0, 0) <= generation_;
    MUSTER_CHECK(connection_->query(std::string("SELECT pg_advisory_unlock(") + kLeaderLock + ")"));
  }
  leads_ = false;
  unsettled_.reset();  // the next leader continues with the data that it finds
  return {};
}

Result<PostgresSession::Lock> PostgresSession::take_lock() {
  for (int attempt = 0; attempt < 3; ++attempt) {
    MUSTER_TRY(const PostgresRows taken,
               connection_->query(std::string("SELECT pg_try_advisory_lock(") + kLeaderLock + ")"));
    if (taken.number(0, 0) == 1) return Lock::kTaken;
    MUSTER_TRY(const PostgresRows holders, connection_->query(kLeaderLockHolders));
    if (holders.size() == 0) continue;  // it was released just now
    if (holders.bytes(0, 1) != name_) return Lock::kHeldByOther;
    MUSTER_CHECK(end_own_session(holders.number(0, 0)));
  }
  return Error{.code = ErrorCode::kUnavailable,
               .what = "the database " + url_.shown + " has not released the leader's lock",
               .advice = "an earlier session of this server is still ending; try again"};
}

/// Ends an earlier session of this store whose lost connection the server has not noticed yet.
Result<void> PostgresSession::end_own_session(int64_t process) {
  constexpr int64_t kPatienceMs = 2'000;
  const auto ended = connection_->query("SELECT pg_terminate_backend($1::int8::int4, $2::int8)",
                                        PostgresParameters().number(process).number(kPatienceMs));
  if (!ended) return ended.error();
  return {};
}

Result<bool> PostgresSession::took_place() {
  MUSTER_TRY(const PostgresRows leader, connection_->query("SELECT commit_number FROM leader"));
  return leader.number(0, 0) == unsettled_->number;
}

Result<void> PostgresSession::ready() {
  MUSTER_CHECK(connect());
  if (!leads_ || !unsettled_) return {};
  MUSTER_TRY(const bool is_there, took_place());
  if (is_there) MUSTER_CHECK(undo());
  unsettled_.reset();
  return {};
}

Result<void> PostgresSession::undo() {
  std::vector<PostgresStep> steps;
  steps.push_back(sql("BEGIN ISOLATION LEVEL READ COMMITTED"));
  // Restores the former number of the row: if this COMMIT is lost, too, the number still shows it.
  steps.push_back({.statement = "fence",
                   .parameters = PostgresParameters().number(commit_number_).number(generation_)});
  steps.insert(steps.end(), unsettled_->undo.begin(), unsettled_->undo.end());
  steps.push_back(sql("COMMIT"));
  size_t failed = 0;
  const auto done = connection_->pipeline(steps, &failed);
  if (done) return {};
  if (is_connected()) (void)connection_->execute("ROLLBACK");
  return done.error();
}

Result<PostgresConnection*> PostgresSession::reader() {
  MUSTER_CHECK(ready());
  return connection_.get();
}

Result<void> PostgresSession::commit(const Batch& batch) {
  MUSTER_CHECK(ready());
  Result<void> done;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!leads_) return leads_no_more();
    done = try_commit(batch);
    if (done || is_connected()) return done;
    // The connection was lost. If another can be opened at once, callers do not notice.
    MUSTER_CHECK(connect());
    if (!unsettled_) continue;
    MUSTER_TRY(const bool is_there, took_place());
    const int64_t number = unsettled_->number;
    unsettled_.reset();
    if (!is_there) continue;
    commit_number_ = number;
    return {};
  }
  return done;
}

/// Sets `unsettled_` only if the connection is lost during COMMIT.
Result<void> PostgresSession::try_commit(const Batch& batch) {
  std::vector<PostgresStep> undo;
  Result<void> done = write(batch, undo);
  if (!done) {
    if (is_connected()) MUSTER_CHECK(connection_->execute("ROLLBACK"));
    return done;
  }
  done = connection_->execute("COMMIT");
  if (done) {
    ++commit_number_;
  } else if (!is_connected()) {
    unsettled_ = {.number = commit_number_ + 1, .undo = std::move(undo)};
  }
  return done;
}

/// Everything except COMMIT, in one round trip. If one of several new jobs cannot be inserted, a second
/// attempt inserts each by a statement of its own, for an error that names the job.
Result<void> PostgresSession::write(const Batch& batch, std::vector<PostgresStep>& undo) {
  Result<void> done = write_by(batch, kRowsOfStatement, undo);
  if (done || done.error().code != ErrorCode::kConflict || batch.new_jobs.size() < 2) return done;
  MUSTER_CHECK(connection_->execute("ROLLBACK"));
  return write_by(batch, 1, undo);
}

Result<void> PostgresSession::write_by(const Batch& batch, size_t rows_of_statement,
                                       std::vector<PostgresStep>& undo) {
  std::vector<PostgresStep> steps;
  steps.push_back(sql("BEGIN ISOLATION LEVEL READ COMMITTED"));
  steps.push_back(
      {.statement = "fence",
       .parameters = PostgresParameters().number(commit_number_ + 1).number(generation_)});
  const size_t first_read = steps.size();
  for (PostgresStep& read : reads_before(batch)) steps.push_back(std::move(read));
  const size_t first_write = steps.size();
  PostgresWrites writes = writes_of(batch, rows_of_statement);
  for (PostgresStep& write : writes.steps) steps.push_back(std::move(write));

  size_t failed = 0;
  auto answers = connection_->pipeline(steps, &failed);
  if (!answers) {
    if (answers.error().code != ErrorCode::kConflict) return answers.error();
    for (const auto& [step, jobs] : writes.inserts) {
      if (first_write + step == failed && jobs.size() == 1) return job_is_taken(*jobs.front());
    }
    for (const auto& [step, object] : writes.objects) {
      if (first_write + step == failed) return object_is_taken(*object);
    }
    return answers.error();
  }
  if ((*answers)[1].changed() != 1) {
    leads_ = false;
    return leads_no_more();
  }
  for (const auto& [step, job] : writes.updates) {
    if ((*answers)[first_write + step].changed() == 0) return job_is_missing(*job);
  }
  answers->erase(answers->begin() + static_cast<std::ptrdiff_t>(first_write), answers->end());
  answers->erase(answers->begin(), answers->begin() + static_cast<std::ptrdiff_t>(first_read));
  undo = undo_of(batch, *answers);
  return {};
}

Result<bool> PostgresSession::try_to_lead(const std::string& address) {
  MUSTER_CHECK(ready());
  if (leads_) return true;
  Result<bool> done = lead(address);
  if (done || is_connected()) return done;
  MUSTER_CHECK(ready());  // the loss of the connection may be noticed only now
  return lead(address);
}

/// REQUIRES: this session has the lock.
Result<PostgresRows> PostgresSession::become_leader(const std::string& address) {
  // A server of another release may have led since this connection was opened: of an earlier one,
  // for which connect_now() left the tables alone, or of a later one, which changed them.
  MUSTER_CHECK(migrate(*connection_, kPostgresMigrations, backup_folder_));
  if (!is_schema_current_) {
    MUSTER_CHECK(connection_->prepare(postgres_statements()));
    is_schema_current_ = true;
  }
  return connection_->query(
      "UPDATE leader SET address = $1::text, generation = generation + 1"
      " RETURNING generation, commit_number",
      PostgresParameters().text(address));
}

Result<bool> PostgresSession::lead(const std::string& address) {
  MUSTER_TRY(const Lock lock, take_lock());
  if (lock == Lock::kHeldByOther) return false;
  Result<PostgresRows> leader = become_leader(address);
  if (!leader) {
    connection_.reset();  // and with it the lock
    return leader.error();
  }
  generation_ = leader->number(0, 0);
  commit_number_ = leader->number(0, 1);
  leads_ = has_led_ = true;
  has_lost_commits_ = false;
  return true;
}

}  // namespace muster::store

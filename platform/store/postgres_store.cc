#include "store/postgres_store.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "store/job_reader.h"
#include "store/postgres_schema.h"
#include "store/postgres_session.h"
#include "store/records.h"
#include "store/sqlite_schema.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

/// The idempotency keys in the database, as hashes. Nearly every key of a new job is new, and is
/// recognised as that without a question to the database, which costs as much as storing the job.
class PostgresKeys {
 public:
  void add(std::string_view key) { added_.insert(hash(key)); }
  /// Collects the keys of the rows of a load.
  void add_loaded(std::string_view key) { loaded_.push_back(hash(key)); }
  void finish_load() { std::sort(loaded_.begin(), loaded_.end()); }
  /// False: no job has the key. Keys of removed jobs stay.
  bool may_contain(std::string_view key) const {
    const uint64_t hashed = hash(key);
    return added_.contains(hashed) || std::binary_search(loaded_.begin(), loaded_.end(), hashed);
  }

 private:
  static uint64_t hash(std::string_view key) { return std::hash<std::string_view>()(key); }
  std::vector<uint64_t> loaded_;  ///< sorted
  std::unordered_set<uint64_t> added_;
};

struct PostgresStore::Impl {
  PostgresSession session;
  PostgresKeys keys;
  /// The lead during which `keys` was loaded. Since then only this server has written, or its
  /// commits are refused.
  std::optional<int64_t> generation_of_keys;

  /// The result of `read` on a connection; if that was lost, on another.
  template <class Read>
  auto read(Read read) -> decltype(read(std::declval<PostgresConnection&>())) {
    MUSTER_TRY(PostgresConnection * connection, session.reader());
    auto done = read(*connection);
    if (done || !connection->is_broken()) return done;
    MUSTER_TRY(connection, session.reader());
    return read(*connection);
  }
};

PostgresStore::PostgresStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PostgresStore::~PostgresStore() = default;

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(
    const std::string& url, const std::filesystem::path& backup_folder, PasswordSource password) {
  MUSTER_TRY(PostgresUrl parsed, PostgresUrl::parse(url));
  parsed.password_source = std::move(password);
  auto impl = std::make_unique<Impl>(PostgresSession(std::move(parsed), backup_folder));
  MUSTER_CHECK(impl->session.reader());
  return std::unique_ptr<PostgresStore>(new PostgresStore(std::move(impl)));
}

namespace {

/// `keys`: nullptr, or gets the idempotency keys; the jobs are packed.
Result<Contents> load_all(PostgresConnection& connection, PostgresKeys* keys) {
  Contents contents;
  for (const RecordKind& kind : kRecordKinds) {
    const bool is_packed = keys != nullptr && &kind == &job_kind();
    JobReader reader(contents);
    const std::string query = is_packed ? packed_jobs_query(", idempotency_key") : kind.query();
    MUSTER_CHECK(connection.each_row(query, [&](const PostgresRows& row) -> Result<void> {
      if (is_packed) {
        reader.add(row.record(0, kind.key.size()));
        const int key = row.columns() - 1;
        if (!row.is_null(0, key)) keys->add_loaded(row.bytes(0, key));
      } else {
        take_record(kind, row.record(0, kind.key.size()), contents);
      }
      return {};
    }));
    reader.finish();
  }
  return contents;
}

/// Without a time limit, because all records are read.
Result<Contents> load_in_snapshot(PostgresConnection& connection, PostgresKeys* keys) {
  MUSTER_CHECK(
      connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
                         "SET LOCAL statement_timeout = 0"));
  Result<Contents> contents = load_all(connection, keys);
  const Result<void> ended = connection.execute("ROLLBACK");
  if (contents && !ended) return ended.error();
  return contents;
}

/// Hands out $1, $2 and so on.
class Conditions {
 public:
  std::string text(std::string_view value) {
    parameters_.text(value);
    return next() + "::text";
  }
  std::string number(int64_t value) {
    parameters_.number(value);
    return next() + "::int8";
  }
  const PostgresParameters& parameters() const { return parameters_; }

 private:
  std::string next() const { return "$" + std::to_string(parameters_.size()); }
  PostgresParameters parameters_;
};

/// The recorded actions that `kind` matches: itself, and all that begin with it and '.'.
Result<std::vector<std::string>> read_audit_actions(PostgresConnection& connection,
                                                    const std::string& kind) {
  MUSTER_TRY(const PostgresRows rows,
             connection.query(audit_actions_query("$1::text"), PostgresParameters().text(kind)));
  std::vector<std::string> actions;
  for (int row = 0; row < rows.size(); ++row) actions.emplace_back(rows.bytes(row, 0));
  return actions;
}

Result<std::vector<access::AuditRecord>> read_audit(PostgresConnection& connection,
                                                    const access::AuditQuery& query) {
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  const uint64_t before = std::min(query.before.value_or(kLargest), kLargest);
  Conditions values;
  std::string sql =
      "SELECT CAST(time AS TEXT), actor, project, action, document, checksum, number"
      " FROM audit WHERE number < " +
      values.number(static_cast<int64_t>(before));
  if (query.user) sql += " AND actor = " + values.text(*query.user);
  if (query.project) sql += " AND project = " + values.text(*query.project);
  if (query.since) {
    sql += " AND " + audit_since_condition(values.number(query.since->time_since_epoch().count()));
  }
  const std::string order =
      " ORDER BY number DESC LIMIT " + values.number(std::max(0, query.limit));
  if (query.action) {
    MUSTER_TRY(const std::vector<std::string> actions,
               read_audit_actions(connection, *query.action));
    if (actions.empty()) return std::vector<access::AuditRecord>();
    std::vector<std::string> newest;
    for (const std::string& action : actions) {
      newest.push_back(sql + " AND action = " + values.text(action) + order);
    }
    sql = audit_of_actions(newest, order);
  } else {
    sql += order;
  }

  MUSTER_TRY(const PostgresRows rows, connection.query(sql, values.parameters()));
  std::vector<access::AuditRecord> found;
  for (int row = 0; row < rows.size(); ++row) {
    found.push_back(read_audit_record(rows.record(row, kAuditKind.key.size()),
                                      static_cast<uint64_t>(rows.number(row, 6))));
  }
  return found;
}

}  // namespace

Result<Contents> PostgresStore::load() {
  return impl_->read(
      [](PostgresConnection& connection) { return load_in_snapshot(connection, nullptr); });
}

Result<Contents> PostgresStore::load_packed() {
  const std::optional<int64_t> generation = impl_->session.generation();
  PostgresKeys keys;
  auto contents = impl_->read([&](PostgresConnection& connection) {
    keys = {};
    return load_in_snapshot(connection, &keys);
  });
  if (!contents || generation != impl_->session.generation()) return contents;
  keys.finish_load();
  impl_->keys = std::move(keys);
  impl_->generation_of_keys = generation;
  return contents;
}

Result<void> PostgresStore::commit(const Batch& batch) {
  if (batch.empty()) return {};
  // Before the commit, which may be reported as failed and yet be in the database for a while.
  for (const NewJob& job : batch.new_jobs) {
    if (impl_->generation_of_keys && !job.idempotency_key.empty()) {
      impl_->keys.add(job.idempotency_key);
    }
  }
  return impl_->session.commit(batch);
}

Result<std::optional<std::string>> PostgresStore::find_by_key(const std::string& idempotency_key) {
  using Id = std::optional<std::string>;
  const std::optional<int64_t> generation = impl_->session.generation();
  if (generation && generation == impl_->generation_of_keys &&
      !impl_->keys.may_contain(idempotency_key)) {
    return Id();
  }
  return impl_->read([&](PostgresConnection& connection) -> Result<Id> {
    MUSTER_TRY(const PostgresRows rows,
               connection.query("SELECT id FROM job WHERE idempotency_key = $1::bytea",
                                PostgresParameters().bytes(idempotency_key)));
    return rows.size() == 0 ? Id() : Id(rows.bytes(0, 0));
  });
}

Result<std::vector<access::AuditRecord>> PostgresStore::audit(const access::AuditQuery& query) {
  return impl_->read([&](PostgresConnection& connection) { return read_audit(connection, query); });
}

Result<void> PostgresStore::ping() {
  return impl_->read([&](PostgresConnection& connection) -> Result<void> {
    MUSTER_TRY(const PostgresRows state,
               connection.query("SELECT current_setting('transaction_read_only') = 'on'"));
    if (state.number(0, 0) == 0) return {};
    return Error{.code = ErrorCode::kRefused,
                 .what = "the database " + impl_->session.url().shown + " is read-only",
                 .advice = "it is a standby, or was made read-only: give the primary server"};
  });
}

Result<bool> PostgresStore::try_to_lead(const std::string& address) {
  return impl_->session.try_to_lead(address);
}

Result<std::optional<LeadHolder>> PostgresStore::leader() {
  using Holder = std::optional<LeadHolder>;
  return impl_->read([&](PostgresConnection& connection) -> Result<Holder> {
    MUSTER_TRY(const PostgresRows holders, connection.query(kLeaderLockHolders));
    if (holders.size() == 0) return Holder();
    MUSTER_TRY(const PostgresRows leader, connection.query("SELECT address FROM leader"));
    // A server whose commit was refused may still have the lock, but leads no longer.
    const bool is_self =
        holders.bytes(0, 1) == impl_->session.name() && impl_->session.generation().has_value();
    return Holder({.address = std::string(leader.bytes(0, 0)), .is_self = is_self});
  });
}

}  // namespace muster::store

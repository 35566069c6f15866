#include "store/postgres_store.h"

#include <algorithm>
#include <limits>

#include "store/job_reader.h"
#include "store/postgres_schema.h"
#include "store/postgres_session.h"
#include "store/records.h"
#include "store/sqlite_schema.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

struct PostgresStore::Impl {
  PostgresSession session;

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
    const std::string& url, const std::filesystem::path& backup_folder) {
  MUSTER_TRY(PostgresUrl parsed, PostgresUrl::parse(url));
  auto impl = std::make_unique<Impl>(PostgresSession(std::move(parsed), backup_folder));
  MUSTER_CHECK(impl->session.reader());
  return std::unique_ptr<PostgresStore>(new PostgresStore(std::move(impl)));
}

namespace {

Result<Contents> load_all(PostgresConnection& connection, bool are_packed) {
  Contents contents;
  MUSTER_TRY(const PostgresRows jobs, connection.query("SELECT count(*) FROM job"));
  const auto count = static_cast<size_t>(jobs.number(0, 0));
  are_packed ? contents.stored.reserve(count) : contents.jobs.reserve(count);
  for (const RecordKind& kind : kRecordKinds) {
    const bool is_packed = are_packed && &kind == &job_kind();
    JobReader reader(contents);
    MUSTER_CHECK(connection.each_row(kind.query(), [&](const PostgresRows& row) -> Result<void> {
      if (is_packed) {
        reader.add(row.record(0, kind.key.size()));
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
Result<Contents> load_in_snapshot(PostgresConnection& connection, bool are_packed) {
  MUSTER_CHECK(
      connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
                         "SET LOCAL statement_timeout = 0"));
  Result<Contents> contents = load_all(connection, are_packed);
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
  if (query.action) {
    // '/' is the character behind '.': this is all that begins with "job.".
    const std::string kind = values.text(*query.action);
    sql += " AND (action = " + kind + " OR (action > " + kind + " || '.' AND action < " + kind +
           " || '/'))";
  }
  if (query.since) sql += " AND time >= " + values.number(query.since->time_since_epoch().count());
  sql += " ORDER BY number DESC LIMIT " + values.number(std::max(0, query.limit));

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
      [](PostgresConnection& connection) { return load_in_snapshot(connection, false); });
}

Result<Contents> PostgresStore::load_packed() {
  return impl_->read(
      [](PostgresConnection& connection) { return load_in_snapshot(connection, true); });
}

Result<void> PostgresStore::commit(const Batch& batch) {
  return batch.empty() ? Result<void>() : impl_->session.commit(batch);
}

Result<std::optional<std::string>> PostgresStore::find_by_key(const std::string& idempotency_key) {
  using Id = std::optional<std::string>;
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

Result<std::optional<std::string>> PostgresStore::leader() {
  using Address = std::optional<std::string>;
  return impl_->read([](PostgresConnection& connection) -> Result<Address> {
    MUSTER_TRY(const PostgresRows holders, connection.query(kLeaderLockHolders));
    if (holders.size() == 0) return Address();
    MUSTER_TRY(const PostgresRows leader, connection.query("SELECT address FROM leader"));
    return Address(leader.bytes(0, 0));
  });
}

}  // namespace muster::store

// The store of a single server: SQLite in WAL mode with synchronous=FULL.
//
// A job is one row: searched fields have columns, and the rest is one document, because a job is
// always read and written whole. The schema's version is in PRAGMA user_version; an older database
// is copied and migrated when it is opened.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "store/spare_room.h"
#include "store/sqlite_database.h"
#include "store/store.h"

namespace muster::store {

class SqliteStore : public Store {
 public:
  /// Opens or creates the database (0600). kConflict: a newer release wrote it. kUnavailable:
  /// another process has locked it. kInternal: it is damaged.
  static Result<std::unique_ptr<SqliteStore>> open(const std::filesystem::path& file);
  ~SqliteStore() override;

  Result<Contents> load() override;
  Result<Contents> load_packed() override;
  Result<void> commit(const Batch& batch) override;
  Result<std::optional<std::string>> find_by_key(const std::string& idempotency_key) override;
  Result<std::vector<access::AuditRecord>> audit(const access::AuditQuery& query) override;
  Result<void> ping() override;

 private:
  struct Statements;

  SqliteStore(SqliteDatabase database, const std::filesystem::path& file);
  Result<void> prepare_statements();
  Result<void> try_to_commit(const Batch& batch);
  Result<void> write(const Batch& batch);
  Result<void> write_jobs(const Batch& batch);
  Result<void> write_objects(const Batch& batch);
  Result<void> write_projects(const Batch& batch);
  Result<void> write_accounts(const Batch& batch);
  Result<void> write_notifications(const Batch& batch);
  Result<void> insert(const NewJob& job);
  Result<void> update(const job::Job& job, const Batch& batch);
  Result<void> append(const access::AuditRecord& record);
  Result<std::vector<std::string>> audit_actions(const std::string& kind);

  SqliteDatabase database_;
  SpareRoom spare_room_;
  std::unique_ptr<Statements> statements_;  ///< closed before the database is
};

}  // namespace muster::store
